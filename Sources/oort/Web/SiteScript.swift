/// The page's one script: shows transfers as they go, while a person looks.
///
/// Everything else works without it.
enum SiteScript {
    static let text = """
        "use strict";
        const live = document.getElementById("live");
        let shown = "";
        async function follow() {
            if (!document.hidden && !live.contains(document.activeElement)) {
                try {
                    const answer = await fetch(live.dataset.source, {credentials: "same-origin"});
                    const text = await answer.text();
                    if (answer.ok && text !== shown && !live.contains(document.activeElement)) {
                        live.innerHTML = text;
                        shown = text;
                    }
                } catch {
                    // `oort web` has ended; what was known last stays.
                }
            }
            setTimeout(follow, 2500);
        }
        if (live) follow();

        """
}
