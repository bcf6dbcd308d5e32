import type { StatusCondition } from "#runtime/base/kubernetes-object.js";
import { hasSharedConditions, statusConditionsOf, type StatusFacts } from "#runtime/reconcile/status-conditions.js";
import { type DependentOutcome, type WorkflowResult, createWorkflowResult } from "#runtime/workflow/run.js";
import { assert, suite } from "../../../support/suite.js";

const NOW = new Date("2026-05-04T10:00:00.123Z");
const BEFORE = "2026-05-04T09:00:00Z";

function workflowOf(dependents: { [name: string]: DependentOutcome }): WorkflowResult {
  return createWorkflowResult(Object.entries(dependents));
}

function conditionsOf(dependents: { [name: string]: DependentOutcome }, rest: Partial<StatusFacts> = {}) {
  return statusConditionsOf({ workflow: workflowOf(dependents), before: [], generation: 3, now: NOW, ...rest });
}

/** Without what is the same for all. */
function brief(conditions: readonly StatusCondition[]) {
  return conditions.map(({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`);
}

suite("status conditions", (test) => {
  test("contain only Ready if all dependents are ready", () => {
    assert.equal(conditionsOf({ a: { kind: "created", isReady: true }, b: { kind: "inactive" } }), [
      {
        type: "Ready",
        status: "True",
        reason: "Ready",
        message: "everything is as desired",
        lastTransitionTime: "2026-05-04T10:00:00Z",
        observedGeneration: 3,
      },
    ]);
  });

  test("contain one for each unready dependent with what it waits for", () => {
    const conditions = conditionsOf({
      configMap: { kind: "unchanged", isReady: true },
      deployment: { kind: "updated", isReady: false },
      service: { kind: "waiting", for: ["deployment"] },
      ingress: { kind: "deleted", isGone: true, because: "its reconcilePrecondition is false" },
    });
    assert.equal(brief(conditions), [
      "Ready=False NotReady: deployment: its readyPostcondition is false; service: waits for deployment",
      "DeploymentReady=False NotReady: its readyPostcondition is false",
      "ServiceReady=False DependencyNotReady: waits for deployment",
    ]);
  });

  test("report an error before what waits for it", () => {
    const conditions = conditionsOf({
      a: { kind: "waiting", for: ["b"] },
      b: { kind: "failed", error: new Error('dependent "b": no space left') },
      c: { kind: "deleted", isGone: false, because: "the primary is being deleted" },
    });
    assert.equal(brief(conditions), [
      'Ready=False Failed: a: waits for b; dependent "b": no space left; c: is being deleted, because the primary is being deleted',
      "AReady=False DependencyNotReady: waits for b",
      'BReady=False Failed: dependent "b": no space left',
      "CReady=False Deleting: is being deleted, because the primary is being deleted",
    ]);
  });

  test("report why a dependent waits for its own object", () => {
    const conditions = conditionsOf({
      a: { kind: "waiting", for: [], because: "the object is being deleted", isHeld: true },
      b: { kind: "waiting", for: ["b"] },
    });
    assert.equal(brief(conditions), [
      "Ready=False NotReady: a: the object is being deleted; b: does not exist yet",
      "AReady=False Deleting: the object is being deleted",
      "BReady=False NotReady: does not exist yet",
    ]);
  });

  test("report reason Waiting with the cause if it is no dependency or deletion", () => {
    const because = "it is created again when Job home/migration has ended";
    const item = { kind: "waiting", for: [], because: "the objects in namespace b are unknown" } as const;
    const bulk = { kind: "unchanged", isReady: false, items: { b: item } } as const;
    assert.equal(
      brief(conditionsOf({ a: { kind: "waiting", for: [], because }, b: { kind: "waiting", for: ["a"] } })),
      [
        `Ready=False Waiting: a: ${because}; b: waits for a`,
        `AReady=False Waiting: ${because}`,
        "BReady=False DependencyNotReady: waits for a",
      ],
    );
    assert.equal(brief(conditionsOf({ bulk }, { isCleanup: true })), [
      'Ready=False Waiting: bulk: item "b": the objects in namespace b are unknown',
      'BulkReady=False Waiting: item "b": the objects in namespace b are unknown',
    ]);
  });

  test("are never Ready during cleanup, even if all objects are deleted", () => {
    const because = "the primary is being deleted";
    const gone = { kind: "deleted", isGone: true, because } as const;
    assert.equal(brief(conditionsOf({ a: gone, b: { kind: "left" } }, { isCleanup: true })), [
      "Ready=False Deleting: the primary is being deleted",
    ]);
    assert.equal(brief(conditionsOf({ a: gone, b: { ...gone, isGone: false } }, { isCleanup: true })), [
      "Ready=False Deleting: b: is being deleted, because the primary is being deleted",
      "BReady=False Deleting: is being deleted, because the primary is being deleted",
    ]);
  });

  test("omit an excluded dependent once it is deleted", () => {
    const ingress = { kind: "deleted", isGone: true, because: "its reconcilePrecondition is false" } as const;
    assert.equal(brief(conditionsOf({ ingress })), ["Ready=True Ready: everything is as desired"]);
    assert.equal(brief(conditionsOf({ ingress: { ...ingress, isGone: false } })).length, 2);
  });

  test("name an unready item of a bulk dependent and count all of them", () => {
    const item = (detail: string): DependentOutcome => ({
      ...{ kind: "created", isReady: false },
      conditions: { readyPostcondition: { isMet: false, detail } },
    });
    const items = {
      a: { kind: "unchanged", isReady: true },
      b: item("0 of 1 replicas"),
      c: item("is pending"),
    } as const;
    const messageOf = (bulk: DependentOutcome) => conditionsOf({ bulk })[1]?.message;
    assert.is(
      messageOf({ kind: "created", isReady: false, items }),
      'item "b": 0 of 1 replicas; 2 of 3 items are not ready',
    );
    const waiting = { kind: "waiting", for: [], because: "the object is being deleted", isHeld: true } as const;
    assert.is(messageOf({ kind: "waiting", for: [], items: { a: waiting } }), 'item "a": the object is being deleted');
    assert.equal(
      brief(conditionsOf({ bulk: { kind: "unchanged", isReady: false, items: { a: items.a, b: waiting } } })),
      [
        'Ready=False Deleting: bulk: item "b": the object is being deleted',
        'BulkReady=False Deleting: item "b": the object is being deleted',
      ],
    );
  });

  test("use the detail of the readyPostcondition as message", () => {
    const conditions = { readyPostcondition: { isMet: false, detail: "2 of 3 replicas" } };
    assert.is(conditionsOf({ a: { kind: "updated", isReady: false, conditions } })[1]?.message, "2 of 3 replicas");
  });

  test("are not Ready if the reconciler fails, even if the workflow is ready", () => {
    const error = new Error("the status is too large");
    assert.equal(brief(conditionsOf({ a: { kind: "created", isReady: true } }, { error })), [
      "Ready=False Failed: the status is too large",
    ]);
    assert.equal(brief(statusConditionsOf({ before: [], generation: 1, now: NOW, error })), [
      "Ready=False Failed: the status is too large",
    ]);
  });

  test("change lastTransitionTime with the status, not with the message", () => {
    const known = (status: "True" | "False"): StatusCondition[] => [
      { type: "Ready", status, reason: "NotReady", message: "old", lastTransitionTime: BEFORE, observedGeneration: 2 },
    ];
    const waiting = { a: { kind: "waiting", for: ["b"] } } as const;
    const [same] = conditionsOf(waiting, { before: known("False") });
    assert.equal([same?.lastTransitionTime, same?.observedGeneration], [BEFORE, 3]);
    const [other] = conditionsOf(waiting, { before: known("True") });
    assert.is(other?.lastTransitionTime, "2026-05-04T10:00:00Z");
  });

  test("truncate messages to 1024 characters without splitting surrogate pairs", () => {
    const conditions = conditionsOf({ a: { kind: "failed", error: new Error("x".repeat(40_000)) } });
    assert.ok(conditions.every(({ message }) => message.length === 1024 && message.endsWith("…")));
    const wide = conditionsOf({ a: { kind: "failed", error: new Error(`x${"🙂".repeat(1_000)}`) } });
    assert.ok(wide.every(({ message }) => !/[\uD800-\uDBFF]…$/.test(message)));
  });

  test("can be shared only in a list map with key type", () => {
    const schemaOf = (conditions: object) => ({ properties: { status: { properties: { conditions } } } });
    assert.ok(
      hasSharedConditions(schemaOf({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] })),
    );
    assert.not(hasSharedConditions(schemaOf({ type: "array" })));
    assert.not(hasSharedConditions({}));
  });
});
