import type { Schema } from "@gen-operator/schema";
import { type CheckedType, typeOfSchema } from "@gen-operator/schema/cel";
import { type Variables, problemLinesOf } from "../../errors/expression-problem.js";
import type { JsonObject } from "../../json.js";
import { AUTHORIZER, REQUEST } from "../../strategies/admissionregistration/expression-types.js";
import { checkVariables } from "../../strategies/admissionregistration/expressions.js";
import type { Requests } from "../feed/api-client.js";
import type { Controller } from "../feed/controller.js";
import type { KubernetesObject } from "../feed/kubernetes-object.js";
import { type ServedKind, readServedKinds } from "../feed/resource-kinds.js";

interface Policy extends KubernetesObject {
  spec: {
    paramKind?: { apiVersion: string; kind: string };
    matchConstraints?: { resourceRules?: ResourceRule[] };
    validations?: { expression: string; messageExpression?: string }[];
  };
  status?: { observedGeneration?: number };
}

/** A kind and the types of the CEL variables for it. */
interface CheckedKind {
  readonly name: KindName;
  readonly variables: Variables;
}

interface ExpressionWarning {
  readonly fieldRef: string;
  readonly warning: string;
}

const KIND = "validatingadmissionpolicies.admissionregistration.k8s.io";

/** Type-checks the CEL expressions of ValidatingAdmissionPolicies against each kind that they match, and writes warnings to their status. */
export function createPolicyTypes(): Controller<Policy> {
  const types = new KindTypes();
  return {
    kind: KIND,
    async reconcile(policy, { cluster, client }) {
      const { name, generation = 0 } = policy.metadata;
      if (generation <= (policy.status?.observedGeneration ?? 0)) return;
      const expressionWarnings = warningsOf(policy, await checkedKindsOf(policy, types, client));
      const typeChecking = expressionWarnings.length === 0 ? {} : { expressionWarnings };
      await cluster.apply(
        KIND,
        { metadata: { name }, status: { observedGeneration: generation, typeChecking } },
        { manager: "validatingadmissionpolicy-status", subresource: "status" },
      );
    },
  };
}

async function checkedKindsOf({ spec }: Policy, types: KindTypes, client: Requests): Promise<CheckedKind[]> {
  const rules = spec.matchConstraints?.resourceRules ?? [];
  if (!namesKinds(rules)) return [];
  const named = checkedKinds(rules, await readServedKinds(client));
  const params = await paramsOf(spec, types, client);
  const checked: CheckedKind[] = [];
  for (const name of named) {
    const object = await types.typeOf(client, name, `${name.kind}1`);
    if (object !== undefined) checked.push({ name, variables: variablesOf(spec, { object, ...params }) });
  }
  return checked;
}

// A paramKind that is not found is treated as dyn, so it causes no warnings.
async function paramsOf({ paramKind }: Policy["spec"], types: KindTypes, client: Requests): Promise<Variables> {
  if (paramKind === undefined) return {};
  const { apiVersion, kind } = paramKind;
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return { params: (await types.typeOf(client, { group, version, kind }, `${kind}2`)) ?? { kind: "dyn" } };
}

function variablesOf(spec: Policy["spec"], types: { object: CheckedType; params?: CheckedType }): Variables {
  const { authorizer } = AUTHORIZER;
  const seen = { ...REQUEST, ...types, oldObject: types.object, ...(authorizer === undefined ? {} : { authorizer }) };
  return { ...seen, variables: checkVariables(spec as unknown as JsonObject, seen).type };
}

function warningsOf({ spec }: Policy, kinds: readonly CheckedKind[]): ExpressionWarning[] {
  return (spec.validations ?? []).flatMap((validation, index) =>
    (["expression", "messageExpression"] as const).flatMap((member) => {
      const text = validation[member] ?? "";
      const warnings = text === "" ? [] : kinds.flatMap((kind) => warningAbout(text, kind) ?? []);
      if (warnings.length === 0) return [];
      return [{ fieldRef: `spec.validations[${index}].${member}`, warning: warnings.join("\n") }];
    }),
  );
}

function warningAbout(text: string, { name, variables }: CheckedKind): string | undefined {
  const problem = problemLinesOf(text, variables);
  return problem === undefined ? undefined : `${name.group}/${name.version}, Kind=${name.kind}: ${problem}\n`;
}

/** GroupVersionKind. */
interface KindName {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

type Schemas = Record<string, Schema & { "x-kubernetes-group-version-kind"?: KindName[] }>;

const REF_PREFIX = "#/components/schemas/";

/** Builds types from the OpenAPI v3 documents of a server. A document is read again when its URL, which contains a hash, changes. */
class KindTypes {
  readonly #documents = new Map<string, { url: string; schemas: Promise<Schemas> }>();

  /** Returns the type of a kind under `name`; undefined if the server has no schema for it. */
  async typeOf(client: Requests, { group, version, kind }: KindName, name: string): Promise<CheckedType | undefined> {
    const path = group === "" ? `api/${version}` : `apis/${group}/${version}`;
    const schemas = await this.#schemasAt(client, path);
    const schema = Object.values(schemas).find((one) =>
      one["x-kubernetes-group-version-kind"]?.some(
        (each) => each.kind === kind && each.group === group && each.version === version,
      ),
    );
    const definitions = Object.fromEntries(Object.entries(schemas).map(([key, one]) => [REF_PREFIX + key, one]));
    return schema === undefined ? undefined : typeOfSchema(schema, definitions, { isRoot: true, name });
  }

  async #schemasAt(client: Requests, path: string): Promise<Schemas> {
    const { paths } = await client.request<Index>({ method: "GET", path: "/openapi/v3" });
    const url = paths[path]?.serverRelativeURL;
    if (url === undefined) return {};
    const known = this.#documents.get(path);
    if (known?.url === url) return known.schemas;
    const read = client.request<Document>({ method: "GET", path: url });
    const schemas = read.then(({ components }) => components?.schemas ?? {});
    this.#documents.set(path, { url, schemas });
    schemas.catch(() => this.#documents.delete(path));
    return schemas;
  }
}

interface Index {
  paths: Record<string, { serverRelativeURL: string }>;
}

interface Document {
  components?: { schemas?: Schemas };
}

/** The fields of a policy rule that select resources. */
interface ResourceRule {
  apiGroups?: string[];
  apiVersions?: string[];
  resources?: string[];
}

const MOST_OF_A_RULE = 10;

/** Reports whether rules name at least one resource without wildcards. */
function namesKinds(rules: readonly ResourceRule[]): boolean {
  return rules.some((rule) => namesOf(rule).length > 0);
}

/** Returns the kinds that rules match, in the order in which kube-controller-manager checks them; at most ten per rule. */
function checkedKinds(rules: readonly ResourceRule[], served: readonly ServedKind[]): ServedKind[] {
  const kinds = rules.flatMap((rule) =>
    namesOf(rule)
      .flatMap((name) => served.filter((kind) => isCalled(kind, name)))
      .slice(0, MOST_OF_A_RULE),
  );
  const textOf = ({ group, version, kind }: ServedKind): string => [group, version, kind].join("\0");
  const byText = new Map(kinds.map((kind) => [textOf(kind), kind]));
  return [...byText].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, kind]) => kind);
}

interface ResourceName {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

// A rule with a wildcard group or version is skipped, and so are wildcard resources and subresources.
function namesOf({ apiGroups = [], apiVersions = [], resources = [] }: ResourceRule): ResourceName[] {
  if ([...apiGroups, ...apiVersions].some((name) => name.includes("*"))) return [];
  const plain = resources.filter((name) => !/[*/]/.test(name)).sort();
  return [...apiGroups]
    .sort()
    .flatMap((group) =>
      [...apiVersions].sort().flatMap((version) => plain.map((resource) => ({ group, version, resource }))),
    );
}

// kube-controller-manager looks up a resource of the core group in all groups.
function isCalled({ group, version, plural, singular }: ServedKind, name: ResourceName): boolean {
  if (version !== name.version || (name.group !== "" && group !== name.group)) return false;
  return [plural, singular].includes(name.resource.toLowerCase());
}
