import { defineRule } from "../diagnostic.js";

export const DEEP_CODE = defineRule({
  id: "deep-code",
  severity: "varies",
  page: {
    meaning: "Your code is nested too deeply for `generate` to check it.",
    remedy: "Split the expression.",
  },
});

export const FLOATING_PROMISE = defineRule({
  id: "floating-promise",
  severity: "error",
  acceptedBy: ["dependent"],
  page: {
    meaning:
      "A promise is not awaited, returned, assigned, or given a rejection handler. The operator continues before the promise settles: for example, a finalizer is removed while an external record still exists. A rejection is not retried, and exits the process.",
    remedy:
      "Await the promise, return it, or add `void` in front of it if it may end later. After `void`, a rejection still exits the process: add `.catch(…)`.",
    example: "floating-promise",
  },
});

export const MISSING_RECONCILER = defineRule({
  id: "missing-reconciler",
  severity: "error",
  page: {
    meaning:
      "With `invocation: explicit` only the reconciler runs the workflow, and its file is not found. Only `generate --check` reports it.",
    remedy: "Run `generate`, which writes a stub, or remove `invocation: explicit`.",
    example: "check-missing-reconciler",
  },
});

export const MISSING_STUB = defineRule({
  id: "missing-stub",
  severity: "error",
  page: {
    meaning: "Generated code imports one of your files, which is not found. Only `generate --check` reports it.",
    remedy: "Run `generate`, which writes a stub, and commit the file.",
  },
});

export const STUB_CONSTANT = defineRule({
  id: "stub-constant",
  severity: "error",
  page: {
    meaning: "One of your files does not export the constant from which generated code takes your functions.",
    remedy: "Move the functions into one constant, as the message shows.",
    example: "stub-constant",
  },
});

export const UNINVOKED_WORKFLOW = defineRule({
  id: "uninvoked-workflow",
  severity: "warning",
  page: {
    meaning:
      "With `invocation: explicit` only the reconciler runs the workflow, and it never calls `context.workflow.reconcile()`.",
    remedy: "Call `context.workflow.reconcile()`, or remove `invocation: explicit`.",
    example: "warning-uninvoked-workflow",
  },
});

export const UNORDERED_READ = defineRule({
  id: "unordered-read",
  severity: "warning",
  acceptedBy: ["dependent"],
  page: {
    meaning: "A function of a dependent reads another dependent that it does not depend on.",
    remedy: "Add the other dependent to `dependsOn`.",
    example: "warning-unordered-read",
  },
});

export const UNREAD_DETAIL = defineRule({
  id: "unread-detail",
  severity: "warning",
  acceptedBy: ["dependent"],
  page: {
    meaning: "A condition returns a detail that the reconciler does not read.",
    remedy: "Read the detail, or return a boolean.",
    example: "warning-unread-detail",
  },
});

export const WHEN_TYPE = defineRule({
  id: "when-type",
  severity: "error",
  page: {
    meaning: "A `when:` does not compile against the types of its names, or its value is not a boolean.",
    remedy: "Correct the expression. The message is TypeScript's own.",
    example: "when-type",
  },
});
