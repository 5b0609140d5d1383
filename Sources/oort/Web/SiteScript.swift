/// The page's one script: shows transfers as they go, while a person looks, and goes on with a sign-in.
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
        // A sign-in went on, perhaps on the service's page in another tab: this one shows it.
        const step = document.querySelector("[data-step]");
        async function goOn() {
            try {
                const answer = await fetch(step.dataset.source, {credentials: "same-origin"});
                if (answer.ok && (await answer.text()).trim() !== step.dataset.step) {
                    location.reload();
                    return;
                }
            } catch {
                // As above.
            }
            setTimeout(goOn, 1000);
        }
        if (step) goOn();

        """
}
