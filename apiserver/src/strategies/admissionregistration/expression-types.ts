// Types of the CEL variables about a request, as kube-apiserver declares them.
import type { VariableType, Variables } from "../../errors/expression-problem.js";

/** Type of values without a known schema. */
export const ANYTHING: VariableType = { kind: "dyn" };

const TEXT: VariableType = { kind: "string" };
const TIME: VariableType = { kind: "timestamp" };
const INT: VariableType = { kind: "int" };
const TEXTS = listOf(TEXT);

const KIND = objectOf("kubernetes.GroupVersionKind", { group: TEXT, version: TEXT, kind: TEXT });
const RESOURCE = objectOf("kubernetes.GroupVersionResource", { group: TEXT, version: TEXT, resource: TEXT });
const USER = objectOf("kubernetes.UserInfo", { username: TEXT, uid: TEXT, groups: TEXTS, extra: mapOf(TEXTS) });
const ADMISSION_REQUEST = objectOf("kubernetes.AdmissionRequest", {
  kind: KIND,
  resource: RESOURCE,
  subResource: TEXT,
  requestKind: KIND,
  requestResource: RESOURCE,
  requestSubResource: TEXT,
  name: TEXT,
  namespace: TEXT,
  operation: TEXT,
  userInfo: USER,
  dryRun: { kind: "bool" },
  options: ANYTHING,
});

const NAMESPACE = objectOf("kubernetes.Namespace", {
  metadata: objectOf("kubernetes.NamespaceMetadata", {
    name: TEXT,
    generateName: TEXT,
    namespace: TEXT,
    labels: mapOf(TEXT),
    annotations: mapOf(TEXT),
    UID: TEXT,
    creationTimestamp: TIME,
    deletionGracePeriodSeconds: INT,
    deletionTimestamp: TIME,
    generation: INT,
    resourceVersion: TEXT,
    finalizers: TEXTS,
  }),
  spec: objectOf("kubernetes.NamespaceSpec", { finalizers: TEXTS }),
  status: objectOf("kubernetes.NamespaceStatus", {
    conditions: listOf(
      objectOf("kubernetes.NamespaceCondition", {
        status: TEXT,
        type: TEXT,
        lastTransitionTime: TIME,
        message: TEXT,
        reason: TEXT,
      }),
    ),
    phase: TEXT,
  }),
});

/** Variables of every expression about a request. */
export const REQUEST: Variables = {
  object: ANYTHING,
  oldObject: ANYTHING,
  request: ADMISSION_REQUEST,
  namespaceObject: NAMESPACE,
};

/** Additional variables of expressions with access to the authorizer. */
export const AUTHORIZER: Variables = {
  authorizer: { kind: "opaque", name: "kubernetes.authorization.Authorizer" },
  "authorizer.requestResource": { kind: "opaque", name: "kubernetes.authorization.ResourceCheck" },
};

/** Returns the type of `variables` from the types of the preceding variables. */
export function variablesType(types: { readonly [name: string]: VariableType }): VariableType {
  return objectOf("kubernetes.variables", types);
}

const DECLARED: ReadonlySet<string> = new Set("bool bytes double duration int null string timestamp uint".split(" "));

/** Returns the declared type of a variable with a given type: objects and Kubernetes types are declared as dyn. */
export function declaredType(type: VariableType): VariableType {
  if (type.kind === "list") return listOf(declaredType(type.element));
  if (type.kind === "map") return { ...type, key: declaredType(type.key), element: declaredType(type.element) };
  return DECLARED.has(type.kind) ? type : ANYTHING;
}

function objectOf(name: string, fields: { readonly [name: string]: VariableType }): VariableType {
  return { kind: "object", name, field: (field) => (Object.hasOwn(fields, field) ? fields[field] : undefined) };
}

function listOf(element: VariableType): VariableType {
  return { kind: "list", element };
}

function mapOf(element: VariableType): VariableType {
  return { kind: "map", key: TEXT, element };
}
