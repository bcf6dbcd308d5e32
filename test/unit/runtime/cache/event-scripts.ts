// Scenarios around own writes as one line each, so that the same can be played to a window alone and to the windows of a controller.
//
// `open` and `close` are the begin and the end of a write, `own5` is what its answer tells; `A5`, `U5`, `D5` are events of that version
// (an update has the version before as its old state); `R5` is an update that a list brings; `?` asks a window what is to be told.
import type { ResourceChange } from "#runtime/cache/resource-events.js";

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
    law: "an own version whose echo has not come is awaited, also when its write has ended",
    script: "open own5 ? close ?",
    window: "- -",
    controller: "",
  },
  { number: "2", law: "an echo is swallowed", script: "open own5 U5 ? close ?", window: "- -", controller: "" },
  {
    number: "3",
    law: "the echo of a creation is swallowed",
    script: "open own5 A5 ? close ?",
    window: "- -",
    controller: "",
  },
  {
    number: "4",
    law: "a change of somebody else before ours is told with it, once",
    script: "open own5 U4 U5 ? ? close",
    window: "U5<3 -",
    controller: "U5<3",
  },
  {
    number: "5, 6",
    law: "of two own versions each waits for its own echo",
    script: "open own5 own6 U5 ? close ? U6 ?",
    window: "- - -",
    controller: "",
  },
  {
    number: "7",
    law: "an addition behind ours is told when the write ends",
    script: "open own5 A6 ? close ?",
    window: "- A6",
    controller: "A6",
  },
  {
    number: "8",
    law: "an addition behind ours is told at once when the write has ended",
    script: "open own5 close A6 ?",
    window: "A6",
    controller: "A6",
  },
  {
    number: "9",
    law: "a change is held while a write is under way whose version nobody knows",
    script: "open U5 ? close ?",
    window: "- U5<4",
    controller: "U5<4",
  },
  {
    number: "10",
    law: "what was held is told when a write ends that made no version",
    script: "open U5 close ?",
    window: "U5<4",
    controller: "U5<4",
  },
  {
    number: "11",
    law: "changes before and behind ours are told",
    script: "open own6 U5 U6 U7 close ?",
    window: "U7<4",
    controller: "U6<4 U7<6",
  },
  {
    number: "12",
    law: "what comes behind ours may be the echo of another write, and is held for it",
    script: "open open own6 close U5 U6 U7 ? own7 ? close",
    window: "U6<4 -",
    controller: "U6<4",
  },
  {
    number: "13",
    law: "a change between two of ours is told",
    script: "open own5 own7 U5 U6 U7 ? close",
    window: "U7<4",
    controller: "U7<5",
  },
  {
    number: "14",
    law: "a change between two of ours is told by a window before the second echo comes",
    script: "open own5 own7 U5 U6 ? U7 ? close",
    window: "U6<4 -",
    controller: "U7<5",
  },
  { number: "15", law: "a deletion is told", script: "open own5 D5 ? close", window: "D5", controller: "D5" },
  {
    number: "16",
    law: "a deletion before our creation is no news",
    script: "open own5 D4 A5 ? close",
    window: "-",
    controller: "",
  },
  {
    number: "17",
    law: "an object that was changed, deleted and made anew by us is told as changed",
    script: "open own7 U5 D6 A7 ? close",
    window: "U7<4",
    controller: "U7<4",
  },
  {
    number: "18",
    law: "a deletion behind ours is told, by a window when the write ends",
    script: "open own5 U5 D6 ? close ?",
    window: "- D6",
    controller: "D6",
  },
  {
    number: "19",
    law: "a change before ours and a deletion behind it are both told",
    script: "open own6 U5 U6 D7 ? close ?",
    window: "U6<4 D7",
    controller: "U6<4 D7",
  },
  {
    number: "20",
    law: "of a change and a deletion behind ours the deletion is told",
    script: "open own5 U5 U6 D7 ? close ?",
    window: "- D7",
    controller: "D7",
  },
  {
    number: "21",
    law: "a deletion before the next write is told, and its echo is swallowed",
    script: "open own5 U5 ? D6 open ? own7 A7 ? close close",
    window: "- D6 -",
    controller: "D6",
  },
  {
    number: "22",
    law: "a deletion behind two of ours is told when both writes have ended",
    script: "open open U5 U6 D7 own5 own6 close close ?",
    window: "D7",
    controller: "D7",
  },
  {
    number: "23",
    law: "a deletion behind two of ours is told when the second write has ended",
    script: "open open U5 U6 D7 own5 close ? own6 close ?",
    window: "- D7",
    controller: "D7",
  },
  {
    number: "24",
    law: "what a list brings is told, even if it is ours alone",
    script: "open own5 R5 ? close",
    window: "U5<4",
    controller: "U5<4",
  },
  {
    number: "25",
    law: "what a list brings behind ours is told",
    script: "open own5 U5 R6 ? close ?",
    window: "- U6<5",
    controller: "U6<5",
  },
  {
    number: "26",
    law: "of two of ours the one that a list brings is told",
    script: "open own5 own6 U5 R6 ? close",
    window: "U6<4",
    controller: "U6<5",
  },
  {
    number: "27",
    law: "what is held for an echo is told when a list brings it",
    script: "open own5 U3 ? close ? R5 ?",
    window: "- - U5<2",
    controller: "U5<2",
  },
];
