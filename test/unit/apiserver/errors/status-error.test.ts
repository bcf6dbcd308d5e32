import { forbiddenError, invalidError, notSupportedError, requiredError } from "#apiserver/errors/field-error.js";
import { quote } from "#apiserver/errors/go-format.js";
import * as status from "#apiserver/errors/status-error.js";
import { assert, suite } from "../../../support/suite.js";

const deployment = { resource: "deployments", group: "apps", name: "d" };
const configMap = { resource: "configmaps", group: "", name: "c" };

suite("status errors", (test) => {
  test("messages name the resource with its group, details the plural", () => {
    const { message, details, code, reason } = status.notFound(deployment).status;
    assert.is(message, 'deployments.apps "d" not found');
    assert.equal(
      { details, code, reason },
      { details: { name: "d", group: "apps", kind: "deployments" }, code: 404, reason: "NotFound" },
    );
    assert.equal(status.notFound(configMap).status.details, { name: "c", kind: "configmaps" });
  });

  test("invalid names the kind, prints equal errors once and lists all causes", () => {
    const error = invalidError("metadata.uid", "a", "field is immutable");
    const { message, details } = status.invalid({ kind: "Deployment", group: "apps", name: "d" }, [
      error,
      error,
    ]).status;
    assert.is(message, 'Deployment.apps "d" is invalid: metadata.uid: Invalid value: "a": field is immutable');
    assert.is(details?.causes?.length, 2);
    assert.is(details?.kind, "Deployment");
    const several = status.invalid({ kind: "X", group: "", name: "x" }, [requiredError("a"), forbiddenError("", "no")]);
    assert.is(several.message, 'X "x" is invalid: [a: Required value, <nil>: Forbidden: no]');
  });

  test("an unsupported value lists the supported ones", () => {
    assert.is(notSupportedError("f", 3, ["1", "2"]).message, 'Unsupported value: 3: supported values: "1", "2"');
  });

  test("text is quoted as Go does", () => {
    assert.is(quote('a"b\\c\n\u0001é\u00a0'), '"a\\"b\\\\c\\n\\x01é\\u00a0"');
  });

  test("a precondition that fails names the kind", () => {
    const mismatch = { field: "UID", given: "a", live: "b" } as const;
    const { message, details } = status.preconditionFailed(
      { kind: "Deployment", group: "apps", name: "d" },
      mismatch,
    ).status;
    assert.is(
      message,
      'Operation cannot be fulfilled on Deployment.apps "d": the UID in the precondition (a) does not match the UID in record (b). The object might have been deleted and then recreated',
    );
    assert.is(details?.kind, "Deployment");
  });

  test("an unexpected failure is internal with a cause, a plain one has neither reason nor details", () => {
    assert.equal(status.internalError("boom").status.details, { causes: [{ message: "boom" }] });
    assert.equal(Object.keys(status.plainError("boom").status), [
      "kind",
      "apiVersion",
      "metadata",
      "status",
      "message",
      "code",
    ]);
  });
});
