// Tells the steps of a story, one JSON list a line, and asks for a restart of the server.
import { isDeepStrictEqual } from "node:util";

export const NOT_OFFERED = "not offered by this client";
export const NOT_IN_VERSION = "not in this version of the protocol";
export const PIPE = "not over a pipe";

export const say = (step, outcome) => process.stdout.write(`${JSON.stringify([step, outcome])}\n`);

export const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Takes the steps in order: a function is done, a text says why there is none. */
export async function tell(steps) {
    for (const [step, action] of Object.entries(steps)) {
        if (typeof action === "string") {
            say(step, action);
            continue;
        }
        const late = new AbortController();
        const limit = new Promise((_, fail) => {
            const timer = setTimeout(() => fail(new Error("it takes more than 25 s")), 25_000);
            late.signal.addEventListener("abort", () => clearTimeout(timer));
        });
        try {
            await Promise.race([action(), limit]);
            say(step, "passed");
        } catch (error) {
            // Whatever is wrong is the outcome, and the next step may still be right.
            say(step, `failed: ${error.stack}`.slice(0, 600));
        }
        late.abort();
    }
}

export function same(seen, wanted) {
    if (!isDeepStrictEqual(seen, wanted)) {
        throw new Error(`${JSON.stringify(seen)} is not ${JSON.stringify(wanted)}`);
    }
}

/** Waits for an error, and gives it. */
export async function fails(promise) {
    const error = await promise.then(() => undefined, (it) => it);
    if (!error) {
        throw new Error("it didn't fail");
    }
    return error;
}

/** Waits for news that comes by another way than answers. */
export async function until(isSo) {
    for (let waited = 0; !isSo(); waited += 20) {
        if (waited > 10_000) {
            throw new Error("nothing was heard for 10 s");
        }
        await sleep(20);
    }
}

export async function restart() {
    const again = new Promise((done) => process.stdin.once("data", done));
    say("restart", "please");
    await again;
    process.stdin.pause();
}
