"""Tells the steps of a story, one JSON list a line, and asks for a restart of the server."""
import asyncio, json, sys, traceback

NOT_OFFERED = "not offered by this client"
PIPE = "not over a pipe"


def say(step, outcome):
    print(json.dumps([step, outcome]), flush=True)


async def tell(steps):
    """Takes the steps in order: a function is done, a text says why there is none."""
    for step, action in steps.items():
        if isinstance(action, str):
            say(step, action)
            continue
        try:
            await asyncio.wait_for(action(), 25)
            say(step, "passed")
        except Exception as error:  # Whatever is wrong is the outcome, and the next step may still be right.
            where = traceback.extract_tb(error.__traceback__)[-1]
            say(step, f"failed: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"[:600])


def same(seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{seen!r} is not {wanted!r}")


async def until(is_so):
    """Waits for news that comes by another way than answers."""
    for _ in range(500):
        if is_so():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("nothing was heard for 10 s")


def whole(error):
    """An error in words, with all that it consists of and that led to it."""
    found, waiting = [], [error]
    while waiting:
        it = waiting.pop()
        if it and it not in found:
            found.append(it)
            waiting += [*getattr(it, "exceptions", []), it.__cause__, it.__context__]
    return " ".join(repr(it) for it in found)


async def restart():
    say("restart", "please")
    await asyncio.to_thread(sys.stdin.readline)
