import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type ApiObject, type Connection } from "../api/api-request.js";
import { repositoryRoot } from "../repository.js";
import { assert, type DeclareTest } from "../suite.js";
import { PATIENCE } from "./cluster-steps.js";

const POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

interface Recorded {
  definition: { metadata: { name: string }; spec: { group: string; versions: { name: string }[] } };
  policies: Record<string, { spec: object; warnings?: Record<string, string> }>;
}

type Policy = ApiObject & {
  status?: {
    observedGeneration?: number;
    typeChecking?: { expressionWarnings?: { fieldRef: string; warning: string }[] };
  };
};

/** Declares invariants of type checking in the status of ValidatingAdmissionPolicies. */
export function declarePolicyTypeLaws(test: DeclareTest, connect: () => Promise<Connection>): void {
  test("reports type errors of policy expressions for each matched kind", async () => {
    const cluster = await connect();
    const { definition, policies } = recorded();
    await apiRequestOrThrow(cluster, `POST ${DEFINITIONS}`, { body: definition });
    for (const { name } of definition.spec.versions) {
      const document = `GET /openapi/v3/apis/${definition.spec.group}/${name}`;
      const isDescribed = async () => (await apiRequest(cluster, document)).text.includes("x-kubernetes-group-version");
      await waitFor(`${name} is described`, isDescribed, PATIENCE);
    }
    await Promise.all(Object.entries(policies).map(([name, { spec }]) => create(cluster, name, spec)));
    for (const [name, { warnings = {} }] of Object.entries(policies))
      assert.equal({ [name]: warningsOf(await checked(cluster, name, 1)) }, { [name]: warnings });
    for (const name of Object.keys(policies)) await apiRequestOrThrow(cluster, `DELETE ${POLICIES}/${name}`);
    await apiRequestOrThrow(cluster, `DELETE ${DEFINITIONS}/${definition.metadata.name}`);
  });

  test("checks a changed policy again, and writes the status under its own field manager", async () => {
    const cluster = await connect();
    const resourceRules = [
      { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["deployments"] },
    ];
    const validations = [{ expression: "object.spec.nope == 1" }];
    const { metadata, ...policy } = await create(cluster, "changed", {
      matchConstraints: { resourceRules },
      validations,
    });
    assert.is((await checked(cluster, "changed", 1)).status?.typeChecking?.expressionWarnings?.length, 1);
    const spec = { ...policy.spec, validations: [{ expression: "object.spec.replicas == 1" }] };
    await apiRequestOrThrow(cluster, `PATCH ${POLICIES}/changed`, {
      body: { spec },
      contentType: "application/merge-patch+json",
    });
    const again = await checked(cluster, "changed", 2);
    assert.equal(again.status, { observedGeneration: 2 });
    const managers = again.metadata.managedFields?.filter(({ subresource }) => subresource === "status");
    assert.equal(
      managers?.map(({ manager, operation }) => [manager, operation]),
      [["validatingadmissionpolicy-status", "Apply"]],
    );
    await apiRequestOrThrow(cluster, `DELETE ${POLICIES}/${metadata.name}`);
  });
}

function recorded(): Recorded {
  return parse(readFileSync(join(repositoryRoot, "fixtures/policy-types.yaml"), "utf8")) as Recorded;
}

function create(cluster: Connection, name: string, spec: object): Promise<Policy> {
  const kind = { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicy" };
  return apiRequestOrThrow(cluster, `POST ${POLICIES}`, { body: { ...kind, metadata: { name }, spec } });
}

function checked(cluster: Connection, name: string, generation: number): Promise<Policy> {
  return waitFor(
    `the policy ${name} is checked`,
    async () => {
      const policy = await apiRequestOrThrow<Policy>(cluster, `GET ${POLICIES}/${name}`);
      return policy.status?.observedGeneration === generation ? policy : undefined;
    },
    PATIENCE,
  );
}

// Type names consist of the kind and a number, which differs each time.
function warningsOf({ status }: Policy): Record<string, string> {
  const warnings = status?.typeChecking?.expressionWarnings ?? [];
  return Object.fromEntries(
    warnings.map(({ fieldRef, warning }) => [fieldRef, warning.replace(/\b([A-Z][A-Za-z]+)\d+(?=[.,)])/g, "$1#")]),
  );
}
