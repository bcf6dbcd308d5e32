import type { NamespaceChange, Namespaces, ViewWatch } from "./view-watch.js";

/**
 * Shows the state of other namespaces in all watches that follow them, in one turn; throws, and leaves everything as it was, if one cannot
 * be watched now. Resolves when the watches that are not needed any more have ended.
 *
 * `following` returns the watches that follow them now, in their order. Watches are started, stopped and added while the state is read, so it
 * is asked again until all of them are ready. `onSwitch` is called in the turn in which the state is shown, before it is.
 */
export async function switchNamespaces(
  namespaces: Namespaces,
  following: () => readonly ViewWatch[],
  onSwitch: () => void,
): Promise<void> {
  const prepared = new Map<ViewWatch, NamespaceChange>();
  const rollback = async (watches: readonly ViewWatch[]) => {
    for (const watch of watches) {
      const change = prepared.get(watch);
      prepared.delete(watch);
      await change?.rollback();
    }
  };
  for (;;) {
    const watches = following();
    const missing = watches.filter((watch) => prepared.get(watch)?.isCurrent() !== true);
    const outdated = [...prepared.keys()].filter((watch) => missing.includes(watch) || !watches.includes(watch));
    if (missing.length + outdated.length === 0) {
      onSwitch();
      await Promise.all(watches.map((watch) => prepared.get(watch)!.commit()));
      return;
    }
    await rollback(outdated);
    const settled = await Promise.allSettled(
      missing.map(async (watch) => prepared.set(watch, await watch.prepare(namespaces))),
    );
    const failed = settled.find((each) => each.status === "rejected");
    if (failed === undefined) continue;
    await rollback([...prepared.keys()]);
    throw failed.reason;
  }
}
