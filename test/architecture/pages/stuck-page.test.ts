// No object hangs silently: the page has every Event that the runtime records, and every condition that says that something is not ready.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { readSources } from "../source-files.js";

/** Events of what does not hang. */
const HARMLESS_EVENTS = ["Pruned"];
/** Conditions of what is ready, and of a workflow that the reconciler chose not to run. */
const HARMLESS_CONDITIONS = ["Ready", "NotRun"];

/** Where states are entered, and left as the page says. */
const WAYS_OUT = "runtime/reconciles/ways-out";
/** The tests of states that need more than that one has. */
const PROVEN: { readonly [event: string]: string } = {
  WriteLoop: "runtime/writes/write-loops",
  SecondOperator: "runtime/operate/foreign-writes",
  WaitingForWatch: "runtime/life-cycle/local-failures",
  DeletionFailed: "runtime/pruning/external-release",
  CleanupTimedOut: "runtime/dependents/cleanup-inputs",
  LeftBehind: "runtime/reconciles/stuck-primaries",
  UnprovenLink: "runtime/dependents/proven-links",
  UnprovenId: "runtime/dependents/external-proofs",
};

const read = (file: string) => readFileSync(join(repositoryRoot, file), "utf8");
const page = read("runtime/docs/stuck.md");
const [, table = ""] = /<!-- stuck: begin -->([^]*)<!-- stuck: end -->/.exec(page) ?? [];
const rows = table
  .split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| (?:state|-)/.test(line))
  .map((line) => {
    const [state = "", event = "", condition = "", wayOut = ""] = line.slice(1, -1).split("|");
    return { state: state.trim(), events: codesIn(event), conditions: codesIn(condition), wayOut };
  });

function codesIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
}

const sorted = (all: Iterable<string>) => [...new Set(all)].sort();
const sources = (folder: string) => readSources(folder).map(({ text }) => text);

/** The reasons in calls that record an Event. */
function recordedReasons(): string[] {
  const calls = sources("runtime/src").flatMap(
    (text) => text.match(/(?:record|[rR]ecordCleanup|report)\([^;]*;/g) ?? [],
  );
  const reasons = calls.flatMap((call) => {
    const ofDraft = [...call.matchAll(/reason: "(\w+)"/g)];
    const ofHelper = [...call.matchAll(/(?:recordCleanup|report)\(\w+, "(\w+)"/g)];
    return [...ofDraft, ...ofHelper].map(([, reason = ""]) => reason);
  });
  return sorted(reasons);
}

function conditionReasons(): string[] {
  const text = read("runtime/src/reconcile/status-conditions.ts");
  const [, union = ""] = /^type Reason =([^;]*);/m.exec(text) ?? [];
  return sorted([...union.matchAll(/"(\w+)"/g)].map(([, reason = ""]) => reason));
}

suite("page about stuck objects", (test) => {
  test("lists exactly the Event reasons that the runtime records, except Pruned", () => {
    const events = recordedReasons().filter((reason) => !HARMLESS_EVENTS.includes(reason));
    assert.ok(events.length > 10, events.join());
    assert.equal(sorted(rows.flatMap((row) => row.events)), events);
  });

  test("lists exactly the condition reasons that mean not ready", () => {
    const conditions = conditionReasons().filter((reason) => !HARMLESS_CONDITIONS.includes(reason));
    assert.ok(conditions.length > 4, conditions.join());
    assert.equal(sorted(rows.flatMap((row) => row.conditions)), conditions);
  });

  test("names one Event and a way out for every state", () => {
    const incomplete = rows.filter(({ events, wayOut }) => events.length !== 1 || codesIn(wayOut).length === 0);
    assert.equal(
      incomplete.map(({ state }) => state),
      [],
    );
  });

  test("has an integration test that names the reason of each Event in its code", () => {
    const events = sorted(rows.flatMap((row) => row.events));
    const missing = events.filter((event) => {
      const code = read(`test/integration/${PROVEN[event] ?? WAYS_OUT}.test.ts`).replaceAll(/^ *\/\/.*$/gm, "");
      return !new RegExp(`["'\`: ]${event}["'\`: ,/]`).test(code);
    });
    assert.equal(missing, []);
    assert.equal(
      Object.keys(PROVEN).filter((event) => !events.includes(event)),
      [],
    );
  });
});
