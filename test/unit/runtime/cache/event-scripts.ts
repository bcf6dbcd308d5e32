// Scenarios around own writes as one line each, so that the same can be played to a window alone and to the windows of a controller.
//
// `open` and `close` are the begin and the end of a write, `own5` is what its answer tells; `A5`, `U5`, `D5` are events of that version
// (an update has the version before as its old state); `R5` is an update that a list brings; `?` asks a window what is to be told.
import type { ResourceChange } from "#runtime/cache/resource-cache.js";

/** What happens, and what is told then: by a window at each `?` ("-" is nothing), by the windows of a controller as it happens. */
export interface Scenario {
  /** The numbers in JOSDK's EventFilterWindowTest. */
  readonly number: string;
  readonly law: string;
  readonly script: string;
  readonly window: string;
  readonly controller: string;
}

const KINDS = { A: "added", U: "updated", R: "updated", D: "deleted" } as const;

/** Returns the event that a word of a script stands for. */
export function changeOf(word: string, key = "x/a"): ResourceChange {
  const kind = KINDS[word[0] as keyof typeof KINDS];
  const version = Number(word.slice(1));
  const state = (at: number) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: key.replace(/.*\//, ""), namespace: "x", uid: "u", resourceVersion: `${at}` },
  });
  const old = kind === "added" ? {} : { old: state(version - 1) };
  return { kind, key, object: state(version), ...old, isInitial: word.startsWith("R") };
}

/** Returns what is told as a word: `U7<4` is an update to 7 from 4. */
export function wordOf(change: ResourceChange | undefined): string {
  if (change === undefined) return "-";
  const version = change.object.metadata.resourceVersion ?? "";
  if (change.kind === "updated") return `U${version}<${change.old?.metadata.resourceVersion}`;
  return (change.kind === "added" ? "A" : "D") + version;
}

/** JOSDK's EventFilterWindowTest, which its EventFilterSupportTest repeats. */
export const SCENARIOS: readonly Scenario[] = [
  {
    number: "1",
    law: "awaits the event of an own write, also after the write has ended",
    script: "open own5 ? close ?",
    window: "- -",
    controller: "",
  },
  {
    number: "2",
    law: "drops the event of an own update",
    script: "open own5 U5 ? close ?",
    window: "- -",
    controller: "",
  },
  {
    number: "3",
    law: "drops the event of an own creation",
    script: "open own5 A5 ? close ?",
    window: "- -",
    controller: "",
  },
  {
    number: "4",
    law: "merges a foreign change before an own write with its event",
    script: "open own5 U4 U5 ? ? close",
    window: "U5<3 -",
    controller: "U5<3",
  },
  {
    number: "5, 6",
    law: "awaits the own event of each of two writes",
    script: "open own5 own6 U5 ? close ? U6 ?",
    window: "- - -",
    controller: "",
  },
  {
    number: "7",
    law: "keeps an addition after an own write until the write ends",
    script: "open own5 A6 ? close ?",
    window: "- A6",
    controller: "A6",
  },
  {
    number: "8",
    law: "emits an addition immediately if the own write has ended",
    script: "open own5 close A6 ?",
    window: "A6",
    controller: "A6",
  },
  {
    number: "9",
    law: "keeps a change while a write without a known version is in flight",
    script: "open U5 ? close ?",
    window: "- U5<4",
    controller: "U5<4",
  },
  {
    number: "10",
    law: "emits kept changes when a write ends without a version",
    script: "open U5 close ?",
    window: "U5<4",
    controller: "U5<4",
  },
  {
    number: "11",
    law: "emits foreign changes before and after an own write",
    script: "open own6 U5 U6 U7 close ?",
    window: "U7<4",
    controller: "U6<4 U7<6",
  },
  {
    number: "12",
    law: "keeps a later change that may be the own event of another write",
    script: "open open own6 close U5 U6 U7 ? own7 ? close",
    window: "U6<4 -",
    controller: "U6<4",
  },
  {
    number: "13",
    law: "emits a foreign change between two own writes",
    script: "open own5 own7 U5 U6 U7 ? close",
    window: "U7<4",
    controller: "U7<5",
  },
  {
    number: "14",
    law: "emits a foreign change between two own writes, from a window before the second own event",
    script: "open own5 own7 U5 U6 ? U7 ? close",
    window: "U6<4 -",
    controller: "U7<5",
  },
  { number: "15", law: "emits a deletion", script: "open own5 D5 ? close", window: "D5", controller: "D5" },
  {
    number: "16",
    law: "drops a deletion before an own creation",
    script: "open own5 D4 A5 ? close",
    window: "-",
    controller: "",
  },
  {
    number: "17",
    law: "emits a change, a deletion and an own recreation as one update",
    script: "open own7 U5 D6 A7 ? close",
    window: "U7<4",
    controller: "U7<4",
  },
  {
    number: "18",
    law: "emits a deletion after an own write, at the latest when it ends",
    script: "open own5 U5 D6 ? close ?",
    window: "- D6",
    controller: "D6",
  },
  {
    number: "19",
    law: "emits a foreign change before an own write and a deletion after it",
    script: "open own6 U5 U6 D7 ? close ?",
    window: "U6<4 D7",
    controller: "U6<4 D7",
  },
  {
    number: "20",
    law: "emits only the deletion of a change and a deletion after an own write",
    script: "open own5 U5 U6 D7 ? close ?",
    window: "- D7",
    controller: "D7",
  },
  {
    number: "21",
    law: "emits a deletion before the next write and drops its own event",
    script: "open own5 U5 ? D6 open ? own7 A7 ? close close",
    window: "- D6 -",
    controller: "D6",
  },
  {
    number: "22",
    law: "emits a deletion after two own writes when both have ended",
    script: "open open U5 U6 D7 own5 own6 close close ?",
    window: "D7",
    controller: "D7",
  },
  {
    number: "23",
    law: "emits a deletion after two own writes when the second has ended",
    script: "open open U5 U6 D7 own5 close ? own6 close ?",
    window: "- D7",
    controller: "D7",
  },
  {
    number: "24",
    law: "emits an object of a relist, even if it is only an own write",
    script: "open own5 R5 ? close",
    window: "U5<4",
    controller: "U5<4",
  },
  {
    number: "25",
    law: "emits a newer object of a relist",
    script: "open own5 U5 R6 ? close ?",
    window: "- U6<5",
    controller: "U6<5",
  },
  {
    number: "26",
    law: "emits the second of two own writes if a relist delivers it",
    script: "open own5 own6 U5 R6 ? close",
    window: "U6<4",
    controller: "U6<5",
  },
  {
    number: "27",
    law: "emits changes kept for an own event when a relist delivers it",
    script: "open own5 U3 ? close ? R5 ?",
    window: "- - U5<2",
    controller: "U5<2",
  },
];
