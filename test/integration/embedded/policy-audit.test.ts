import { startApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { apiRequest, apiRequestOrThrow } from "../../support/api/api-request.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

interface Entry {
  readonly objectRef?: { name?: string; resource?: string };
  readonly requestObject?: unknown;
  readonly annotations?: Record<string, string>;
}

suite("ValidatingAdmissionPolicy in the audit log", (test) => {
  test("records failures of bindings with Audit, and the auditAnnotations", async () => {
    await using folder = await createTemporaryFolder();
    const auditLog = join(folder.path, "audit.log");
    const to = await startApiServer({ tls: false, auditLog });
    try {
      const rule = { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] };
      const spec = {
        matchConstraints: { resourceRules: [rule] },
        validations: [
          { expression: "true" },
          { expression: "object.metadata.name == 'good'", messageExpression: "'<' + object.metadata.name + '>'" },
          { expression: "object.metadata.name.size() < 6", message: "too long" },
        ],
        auditAnnotations: [
          { key: "name", valueExpression: "' is ' + object.metadata.name" },
          { key: "nothing", valueExpression: "null" },
          { key: "data", valueExpression: "string(object.metadata.name == 'fails' ? object.data.missing : ' ')" },
        ],
      };
      await apiRequestOrThrow(to, `POST ${ADMISSION}/validatingadmissionpolicies`, {
        body: { metadata: { name: "audited.example.com" }, spec },
      });
      await apiRequestOrThrow(to, `POST ${ADMISSION}/validatingadmissionpolicybindings`, {
        body: {
          metadata: { name: "binding" },
          spec: { policyName: "audited.example.com", validationActions: ["Warn", "Audit"] },
        },
      });
      const create = (name: string) =>
        apiRequest(to, `POST ${CONFIG_MAPS}?dryRun=All`, { body: { metadata: { name } } });
      await waitFor(
        "the policy is in force",
        async () => String((await create("probe")).headers["warning"] ?? "").includes("<probe>"),
        { timeoutMs: 20_000 },
      );
      assert.is((await create("wrong")).status, 201);
      assert.is((await create("good")).status, 201);
      const failed = await create("fails");
      assert.is(failed.status, 422);
      assert.match(
        (failed.body as unknown as { message: string }).message,
        "ValidatingAdmissionPolicy 'audited.example.com' with binding 'binding' denied request: expression 'string(object.metadata.name == 'fails' ? object.data.missing : ' ')' resulted in error: no such key: data",
      );
      // Only a POST with the name in its body names nothing in the log, so the annotation tells the entries apart.
      const annotated = async (name: string) => {
        const lines = (await readFile(auditLog, "utf8")).split("\n").filter((line) => line.endsWith("}"));
        const found = lines
          .map((line) => JSON.parse(line) as Entry)
          .find(({ annotations }) => annotations?.["audited.example.com/name"] === `is ${name}`);
        const own = Object.entries(found?.annotations ?? {}).filter(
          ([key]) => !key.startsWith("authorization.k8s.io/"),
        );
        return Object.fromEntries(own);
      };
      const isLogged = async () => (await annotated("fails"))["audited.example.com/name"] === "is fails";
      await waitFor("the requests are in the log", isLogged, { timeoutMs: 20_000 });
      assert.equal(await annotated("wrong"), {
        "audited.example.com/name": "is wrong",
        "validation.policy.admission.k8s.io/validation_failure":
          '[{"message":"\\u003cwrong\\u003e","policy":"audited.example.com","binding":"binding","expressionIndex":1,"validationActions":["Warn","Audit"]}]',
      });
      assert.equal(await annotated("good"), { "audited.example.com/name": "is good" });
    } finally {
      await to.close();
    }
  });
});
