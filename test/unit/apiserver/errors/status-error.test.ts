import { forbiddenError, invalidError, notSupportedError, requiredError } from "#apiserver/errors/field-error.js";
import { quote } from "#apiserver/errors/go-format.js";
import * as status from "#apiserver/errors/status-error.js";
import { assert, suite } from "../../../support/suite.js";

const deployment = { resource: "deployments", group: "apps", name: "d" };
const configMap = { resource: "configmaps", group: "", name: "c" };

suite("Status error", (test) => {
  test("has the resource and group in its message and the plural in its details", () => {
    const { message, details, code, reason } = status.notFound(deployment).status;
    assert.is(message, 'deployments.apps "d" not found');
    assert.equal(
      { details, code, reason },
      { details: { name: "d", group: "apps", kind: "deployments" }, code: 404, reason: "NotFound" },
    );
    assert.equal(status.notFound(configMap).status.details, { name: "c", kind: "configmaps" });
  });

  test("names the kind, merges equal messages, and lists all causes if Invalid", () => {
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

  test("lists the supported values for an unsupported one", () => {
    assert.is(notSupportedError("f", 3, ["1", "2"]).message, 'Unsupported value: 3: supported values: "1", "2"');
  });

  test("quotes text as Go does", () => {
    assert.is(quote('a"b\\c\n\u0001é\u00a0'), '"a\\"b\\\\c\\n\\x01é\\u00a0"');
  });

  test("names the kind of a failed precondition", () => {
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

  test("has a cause if internal, and neither reason nor details if plain", () => {
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
