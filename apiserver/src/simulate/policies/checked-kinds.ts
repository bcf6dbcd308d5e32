import type { ServedKind } from "../feed/resource-kinds.js";

/** A rule of a policy, as far as it says which kinds it is about. */
export interface ResourceRule {
  apiGroups?: string[];
  apiVersions?: string[];
  resources?: string[];
}

const MOST_OF_A_RULE = 10;

/** Tells whether rules name kinds, and not only patterns of them. */
export function namesKinds(rules: readonly ResourceRule[]): boolean {
  return rules.some((rule) => namesOf(rule).length > 0);
}

/** Returns the kinds that rules name, in the order in which kube-controller-manager checks them: ten of a rule at most. */
export function checkedKinds(rules: readonly ResourceRule[], served: readonly ServedKind[]): ServedKind[] {
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

// With a pattern for the group or the version, the rule names nothing; other resources are passed over.
function namesOf({ apiGroups = [], apiVersions = [], resources = [] }: ResourceRule): ResourceName[] {
  if ([...apiGroups, ...apiVersions].some((name) => name.includes("*"))) return [];
  const plain = resources.filter((name) => !/[*/]/.test(name)).sort();
  return [...apiGroups]
    .sort()
    .flatMap((group) =>
      [...apiVersions].sort().flatMap((version) => plain.map((resource) => ({ group, version, resource }))),
    );
}

// kube-controller-manager finds a resource of the core group in all groups.
function isCalled({ group, version, plural, singular }: ServedKind, name: ResourceName): boolean {
  if (version !== name.version || (name.group !== "" && group !== name.group)) return false;
  return [plural, singular].includes(name.resource.toLowerCase());
}
