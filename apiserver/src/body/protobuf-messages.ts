/** The field numbers of the messages that kubectl sends in protobuf and nothing else, from the .proto files of Kubernetes 1.36. */

/** A message: by field number the name and type of each field, `list` and `map` before the type of their values. */
export type Message = Readonly<Record<number, string>>;

/** Messages by name; those of kinds are found by `apiVersion/kind`. */
export const MESSAGES: Readonly<Record<string, Message>> = {
  ObjectMeta: {
    1: "name string",
    2: "generateName string",
    3: "namespace string",
    5: "uid string",
    6: "resourceVersion string",
    11: "labels map string",
    12: "annotations map string",
    14: "finalizers list string",
  },
  NamespaceSpec: { 1: "finalizers list string" },
  PolicyRule: {
    1: "verbs list string",
    2: "apiGroups list string",
    3: "resources list string",
    4: "resourceNames list string",
    5: "nonResourceURLs list string",
  },
  Subject: { 1: "kind string", 2: "apiGroup string", 3: "name string", 4: "namespace string" },
  RoleRef: { 1: "apiGroup string", 2: "kind string", 3: "name string" },
  ResourceAttributes: {
    1: "namespace string",
    2: "verb string",
    3: "group string",
    4: "version string",
    5: "resource string",
    6: "subresource string",
    7: "name string",
  },
  NonResourceAttributes: { 1: "path string", 2: "verb string" },
  SelfSubjectAccessReviewSpec: {
    1: "resourceAttributes ResourceAttributes",
    2: "nonResourceAttributes NonResourceAttributes",
  },
  SelfSubjectRulesReviewSpec: { 1: "namespace string" },

  "v1/Namespace": { 1: "metadata ObjectMeta", 2: "spec NamespaceSpec" },
  "v1/ConfigMap": { 1: "metadata ObjectMeta", 2: "data map string", 3: "binaryData map bytes", 4: "immutable bool" },
  "v1/Secret": {
    1: "metadata ObjectMeta",
    2: "data map bytes",
    3: "type string",
    4: "stringData map string",
    5: "immutable bool",
  },
  "v1/ServiceAccount": { 1: "metadata ObjectMeta", 4: "automountServiceAccountToken bool" },
  "rbac.authorization.k8s.io/v1/Role": { 1: "metadata ObjectMeta", 2: "rules list PolicyRule" },
  "rbac.authorization.k8s.io/v1/ClusterRole": { 1: "metadata ObjectMeta", 2: "rules list PolicyRule" },
  "rbac.authorization.k8s.io/v1/RoleBinding": {
    1: "metadata ObjectMeta",
    2: "subjects list Subject",
    3: "roleRef RoleRef",
  },
  "rbac.authorization.k8s.io/v1/ClusterRoleBinding": {
    1: "metadata ObjectMeta",
    2: "subjects list Subject",
    3: "roleRef RoleRef",
  },
  "authorization.k8s.io/v1/SelfSubjectAccessReview": {
    1: "metadata ObjectMeta",
    2: "spec SelfSubjectAccessReviewSpec",
  },
  "authorization.k8s.io/v1/SelfSubjectRulesReview": { 1: "metadata ObjectMeta", 2: "spec SelfSubjectRulesReviewSpec" },
  "authentication.k8s.io/v1/SelfSubjectReview": { 1: "metadata ObjectMeta" },
};
