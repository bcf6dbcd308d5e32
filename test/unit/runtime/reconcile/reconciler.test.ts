import {
  checkControl,
  keepFinalizer,
  noUpdate,
  patchResource,
  patchResourceAndStatus,
  updateStatus,
  withoutRetry,
} from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../../support/suite.js";

suite("controls", (test) => {
  test("are frozen plain data", () => {
    const made: [control: object, data: object][] = [
      [noUpdate(), {}],
      [noUpdate({ rescheduleAfterMs: 0 }), { rescheduleAfterMs: 0 }],
      [updateStatus({ a: 1 }, { rescheduleAfterMs: 5 }), { status: { a: 1 }, rescheduleAfterMs: 5 }],
      [patchResource({ spec: {} }), { resource: { spec: {} } }],
      [patchResourceAndStatus({ spec: {} }, { a: 1 }), { resource: { spec: {} }, status: { a: 1 } }],
      [keepFinalizer({ rescheduleAfterMs: 5 }), { removeFinalizer: false, rescheduleAfterMs: 5 }],
      [withoutRetry(), { withoutRetry: true }],
      [withoutRetry(updateStatus({ a: 1 })), { status: { a: 1 }, withoutRetry: true }],
    ];
    for (const [control, data] of made) {
      assert.equal(control, data);
      assert.ok(Object.isFrozen(control));
    }
  });

  test("reject a missing status or resource and an invalid rescheduleAfterMs", () => {
    assert.throws(() => updateStatus(null as never), "updateStatus() needs a status, and got null");
    assert.throws(() => patchResource(undefined as never), "patchResource() needs a resource, and got undefined");
    assert.throws(() => patchResourceAndStatus({}, null as never), "patchResourceAndStatus() needs a status");
    for (const rescheduleAfterMs of [-1, Number.NaN, Number.POSITIVE_INFINITY, "5" as never])
      assert.throws(
        () => noUpdate({ rescheduleAfterMs }),
        `noUpdate() needs a rescheduleAfterMs of 0 or more, and got ${rescheduleAfterMs}`,
      );
  });

  test("are validated when returned as literals, with the mistake in the message", () => {
    const accepted: [name: Parameters<typeof checkControl>[0], control: unknown][] = [
      ["reconcile", undefined],
      ["reconcile", { status: { a: 1 }, rescheduleAfterMs: undefined }],
      ["cleanup", { removeFinalizer: true }],
      ["cleanup", { removeFinalizer: false, rescheduleAfterMs: 0 }],
      ["updateErrorStatus", { withoutRetry: true, rescheduleAfterMs: 3 }],
    ];
    for (const [name, control] of accepted) assert.is(checkControl(name, control), control);
    const refused: [name: Parameters<typeof checkControl>[0], control: unknown, message: string][] = [
      ["reconcile", null, "reconcile() returned null instead of a control or nothing"],
      ["reconcile", [], "reconcile() returned a list instead"],
      ["reconcile", true, "reconcile() returned a boolean instead"],
      ["reconcile", new Map(), "reconcile() returned an instance of Map instead"],
      ["reconcile", new Error("x"), "reconcile() returned an instance of Error instead"],
      ["reconcile", { status: "x" }, "reconcile() returned a control whose status is a string instead of an object"],
      ["reconcile", { resource: null }, "a control whose resource is null instead of an object"],
      ["reconcile", { resource: [] }, "a control whose resource is a list instead of an object"],
      ["updateErrorStatus", { status: 5 }, "a control whose status is a number instead of an object"],
      [
        "reconcile",
        { kind: "Page", metadata: {} },
        'a control with "kind"; it may have resource, status, rescheduleAfterMs',
      ],
      ["reconcile", { withoutRetry: true }, 'a control with "withoutRetry"'],
      ["reconcile", { rescheduleAfterMs: -1 }, "reconcile() needs a rescheduleAfterMs of 0 or more"],
      ["cleanup", { removeFinalizer: true, rescheduleAfterMs: 1 }, "Return keepFinalizer({ rescheduleAfterMs })"],
      ["cleanup", { rescheduleAfterMs: 1 }, "Return keepFinalizer({ rescheduleAfterMs })"],
      ["updateErrorStatus", { resource: {} }, 'a control with "resource"'],
    ];
    for (const [name, control, message] of refused)
      assert.throws(
        () => checkControl(name, control),
        (error: Error) => error.message.includes(message),
        message,
      );
  });
});
