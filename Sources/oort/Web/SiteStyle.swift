/// How the page looks, in light and dark, on a wide screen and on a phone.
enum SiteStyle {
    static let text = """
        :root {
            color-scheme: light dark;
            --paper: #fbfbfd; --card: #ffffff; --ink: #1b1e28; --soft: #565d70; --line: #d6d9e3;
            --link: #2546b8; --warn: #9a1f12; --warn-paper: #fdecea; --good-paper: #e8f0ff;
            --del: #ffe3e0; --ins: #dcf5e3; --button: #2546b8; --button-ink: #ffffff;
        }
        @media (prefers-color-scheme: dark) {
            :root {
                --paper: #12141b; --card: #1b1e28; --ink: #e8eaf2; --soft: #a9b0c4; --line: #363b4b;
                --link: #9db4ff; --warn: #ffb4a8; --warn-paper: #3a1a17; --good-paper: #1d2a4d;
                --del: #4a2320; --ins: #1d3d29; --button: #9db4ff; --button-ink: #12141b;
            }
        }
        * { box-sizing: border-box; }
        body {
            margin: 0; background: var(--paper); color: var(--ink);
            font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
        }
        a { color: var(--link); }
        :focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
        main:focus { outline: none; }
        main { max-width: 70rem; margin: 0 auto; padding: 0 1rem 3rem; }
        h1 { font-size: 1.6rem; margin: 1.2rem 0 .6rem; }
        h2 { font-size: 1.2rem; margin: 1.2rem 0 .4rem; }
        h3 { font-size: 1rem; margin: .8rem 0 .2rem; }
        ul, ol { padding-left: 1.2rem; }
        code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
        .skip { position: absolute; left: -100rem; }
        .skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .5rem; z-index: 1; }
        .hidden {
            position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
            white-space: nowrap;
        }
        header {
            display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center;
            padding: .6rem 1rem; border-bottom: 1px solid var(--line); background: var(--card);
        }
        .home {
            display: flex; gap: .5rem; align-items: center; font-weight: 700; text-decoration: none;
            color: var(--ink);
        }
        nav ul, .crumbs ol { list-style: none; display: flex; flex-wrap: wrap; align-items: baseline; gap: .2rem 1rem; margin: 0; padding: 0; }
        nav a, .home { display: inline-block; padding: .25rem 0; }
        .home { display: inline-flex; }
        nav a[aria-current] { font-weight: 700; color: var(--ink); text-decoration-thickness: .15em; }
        .find { margin-left: auto; display: flex; gap: .4rem; }
        .crumbs { margin: 0 0 1rem; }
        .crumbs ol { gap: .2rem .4rem; }
        .crumbs li:not(:last-child)::after { content: " /"; color: var(--soft); }
        .notice {
            margin: 1rem 0 0; padding: .2rem 1rem; background: var(--good-paper);
            border-left: .3rem solid var(--link); white-space: pre-line;
        }
        .failure { background: var(--warn-paper); border-color: var(--warn); }
        .warning { color: var(--warn); }
        .warning a { color: inherit; }
        .accounts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: 1rem; }
        .card {
            background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 0 1rem 1rem;
        }
        .conflict { margin: 1rem 0; }
        .badge {
            display: inline-block; padding: 0 .6rem; border: 1px solid var(--line); border-radius: 1rem;
            color: var(--soft); font-size: .9rem;
        }
        .badge.warn { color: var(--warn); border-color: currentColor; }
        dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .6rem 0; }
        dt { color: var(--soft); }
        dd { margin: 0; }
        meter, progress { width: 100%; max-width: 14rem; height: 1rem; vertical-align: middle; }
        .transfers { list-style: none; padding: 0; }
        input, textarea, select, button, .button {
            font: inherit; min-height: 2.2rem; padding: .2rem .7rem; border-radius: .4rem; color: var(--ink);
            background: var(--card); border: 1px solid var(--soft); max-width: 100%;
        }
        input[type="checkbox"] { min-height: 0; }
        button, .button { cursor: pointer; display: inline-flex; align-items: center; text-decoration: none; color: var(--link); border-color: var(--link); }
        .find button { background: var(--button); color: var(--button-ink); border-color: var(--button); }
        button:hover, .button:hover { text-decoration: underline; }
        .acts { display: flex; flex-wrap: wrap; gap: .6rem 1rem; align-items: center; margin: .8rem 0; }
        .act { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; margin: 0; }
        .fill { max-width: 36rem; margin-top: 1rem; }
        .fill button { background: var(--button); color: var(--button-ink); border-color: var(--button); }
        .field { margin: 0 0 1rem; }
        .field label { display: block; font-weight: 600; }
        .field input:not([type="checkbox"]), .field textarea, .field select { width: 100%; }
        .field.check label { display: inline; font-weight: 400; }
        .hint { color: var(--soft); font-size: .9rem; margin: .1rem 0 0; }
        textarea { min-height: 4.5rem; resize: vertical; }
        details { margin: 0 0 1rem; }
        summary { cursor: pointer; padding: .3rem 0; color: var(--link); }
        .kinds { list-style: none; padding: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(16rem, 100%), 1fr)); gap: .6rem 1rem; }
        .kinds a { font-weight: 600; display: inline-block; padding: .2rem 0; }
        .kinds p { margin: 0; color: var(--soft); font-size: .9rem; }
        .steps > li { margin: 0 0 .8rem; }
        .steps code { display: block; padding: .1rem 0; }
        .main.button { background: var(--button); color: var(--button-ink); border-color: var(--button); padding: .5rem 1rem; }
        .key pre { max-width: 60rem; }
        table { border-collapse: collapse; width: 100%; }
        th, td { text-align: left; padding: .3rem .8rem .3rem 0; vertical-align: middle; border-bottom: 1px solid var(--line); }
        tbody th { font-weight: 400; }
        thead th { color: var(--soft); font-weight: 600; font-size: .9rem; }
        .number, .time { white-space: nowrap; font-variant-numeric: tabular-nums; }
        .picture { width: 3.5rem; }
        .picture img { display: block; object-fit: contain; border-radius: .3rem; margin: auto; }
        .pager { display: flex; flex-wrap: wrap; gap: .5rem 1rem; margin: 1rem 0; }
        figure { margin: 0 0 1rem; }
        figure img, video { max-width: 100%; max-height: 70vh; display: block; }
        audio { width: 100%; }
        iframe { width: 100%; height: 75vh; border: 1px solid var(--line); background: #ffffff; }
        pre {
            background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .8rem;
            overflow: auto; max-height: 75vh; tab-size: 4; white-space: pre-wrap;
        }
        .sides { overflow-x: auto; }
        .sides table { table-layout: fixed; min-width: 34rem; }
        .sides td { font-family: ui-monospace, monospace; font-size: .85rem; white-space: pre-wrap; vertical-align: top; padding: 0 .4rem; border-bottom: 0; border-left: 1px solid var(--line); }
        .sides th { vertical-align: top; padding-left: .4rem; }
        .sides img { max-width: 100%; }
        .sides .none { background: var(--paper); }
        td.del { background: var(--del); } td.ins { background: var(--ins); }
        del, ins { text-decoration: none; color: var(--ink); }
        @media (max-width: 40rem) {
            .find { margin-left: 0; flex: 1 1 100%; }
            .find input { flex: 1; min-width: 0; }
            table.files thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
            table.files tr { display: flex; flex-wrap: wrap; gap: 0 .8rem; align-items: center; padding: .4rem 0; border-bottom: 1px solid var(--line); }
            table.files th, table.files td { border: 0; padding: .1rem 0; }
            table.files tbody th { flex: 1 1 60%; }
            table.files td { color: var(--soft); font-size: .9rem; }
        }

        """

    /// The program's sign, small.
    static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 128 128"><rect x="6" y="6" width="116" \
        height="116" rx="28" fill="#2f4bb5"/><path fill="#fff" d="M41 86a16 16 0 0 1-2-31.900a25 25 0 0 1 \
        47.500-6.400a19.200 19.200 0 0 1 2.500 38.300z"/><circle cx="26" cy="88" r="7" fill="#ffd166"/>\
        <circle cx="79" cy="81" r="6" fill="#ff7b72"/><circle cx="106" cy="58" r="6" fill="#5ee0b0"/></svg>

        """
}
