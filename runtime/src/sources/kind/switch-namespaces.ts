import type { NamespaceChange, Namespaces, ViewWatch } from "./view-watch.js";

/**
 * Shows the state of other namespaces in all watches that follow them, in one turn; throws, and leaves everything as it was, if one cannot
 * be watched now. Resolves when the watches that are not needed any more have ended.
 *
 * `following` returns the watches that follow them now, in their order. Watches are started, stopped and added while the state is read: then
 * it is read again. `onSwitch` is called in the turn in which the state is shown, before it is.
 */
export async function switchNamespaces(
  namespaces: Namespaces,
  following: () => readonly ViewWatch[],
  onSwitch: () => void,
): Promise<void> {
  let outdated: readonly NamespaceChange[] = [];
  for (;;) {
    const watches = following();
    const settled = await Promise.allSettled(watches.map((watch) => watch.prepare(namespaces)));
    const changes = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    // What was prepared before is shared with the watches of now until then, so that it is not read twice.
    for (const change of outdated) await change.rollback();
    outdated = changes;
    const failed = settled.find((each) => each.status === "rejected");
    if (failed !== undefined) {
      for (const change of changes) await change.rollback();
      throw failed.reason;
    }
    const now = following();
    const isSame = now.length === watches.length && now.every((watch, index) => watch === watches[index]);
    if (!isSame || !changes.every((change) => change.isCurrent())) continue;
    onSwitch();
    await Promise.all(changes.map((change) => change.commit()));
    return;
  }
}
