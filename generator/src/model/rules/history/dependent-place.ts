import { quote } from "../../../diagnostic.js";
import type { UntypedKindSpec } from "../../../input/workflow-spec.js";
import { parseKind } from "../../build/resource-catalog.js";
import type { ResolvedDependent, ResolvedRemoved } from "../../build/resolved-project.js";
import { EXTERNAL, type RememberedDependent } from "../../project-memory.js";

/** Where the objects of a dependent are: what `removed` and `moved` have to agree about. Versions of a kind have the same objects. */
export interface DependentPlace {
  /** Absent if the resources are outside of Kubernetes. */
  readonly kind?: { readonly group: string; readonly kind: string };
  readonly cluster?: string;
  /** Absent if the objects are where the controller watches. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Where the ids of external resources are kept. */
  readonly state?: string;
}

/** Returns the place of a dependent of the last generation. */
export function placeOfRemembered({ resource, ...more }: RememberedDependent): DependentPlace {
  return placeAt(resource, more);
}

/** Returns the place of a dependent, or of a removed one; undefined if its kind is not known. */
export function placeOf(dependent: ResolvedDependent | ResolvedRemoved): DependentPlace | undefined {
  const { resource, ...more } = dependent.spec;
  const external = "external" in dependent.spec ? dependent.spec.external : undefined;
  if (external !== undefined) return { ...stateOf(external.state) };
  const isKnown = dependent.resource !== undefined || resource === EXTERNAL;
  return resource !== undefined && isKnown ? placeAt(resource, more) : undefined;
}

function placeAt(
  resource: string | UntypedKindSpec,
  { cluster, namespace, labelSelector, fieldSelector, state }: Omit<DependentPlace, "kind">,
): DependentPlace {
  const { group, kind } = parseKind(
    typeof resource === "string" ? resource : `${resource.apiVersion}/${resource.kind}`,
  );
  return {
    ...(resource === EXTERNAL ? {} : { kind: { group, kind } }),
    ...(cluster === undefined ? {} : { cluster }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(state === undefined ? {} : { state }),
  };
}

function stateOf(state: NonNullable<ResolvedDependent["spec"]["external"]>["state"]): { state?: string } {
  if (state === undefined) return {};
  const { status, in: store = "configMap", resource, path } = state;
  if (status !== undefined) return { state: `status ${status}` };
  return { state: resource === undefined ? store : `resource ${path ?? ""}` };
}

/** Tells whether the objects of two dependents can be the same. */
export function isSamePlace(one: DependentPlace, other: DependentPlace): boolean {
  const isSameKind = one.kind?.group === other.kind?.group && one.kind?.kind === other.kind?.kind;
  return isSameKind && one.cluster === other.cluster;
}

/** Tells whether a dependent sees the objects of a place: its watch shows one namespace only, and what its selectors select. */
export function isSeenBy(dependent: DependentPlace, place: DependentPlace): boolean {
  const limits = ["namespace", "labelSelector", "fieldSelector"] as const;
  const isShown = limits.every((limit) => dependent[limit] === undefined || dependent[limit] === place[limit]);
  return isShown && isSamePlace(dependent, place);
}

/** Describes a place for a message: `a ConfigMap in cluster "edge" in namespace "data"`. */
export function describePlace({
  kind,
  cluster,
  namespace,
  labelSelector,
  fieldSelector,
  state,
}: DependentPlace): string {
  if (kind === undefined) return `external${state === undefined ? "" : ` with its id in ${state}`}`;
  const article = /^[AEIO]/.test(kind.kind) ? "an" : "a";
  const limits = Object.entries({
    "in cluster": cluster,
    "in namespace": namespace,
    "with labelSelector": labelSelector,
    "with fieldSelector": fieldSelector,
  }).map(([name, value]) => (value === undefined ? "" : ` ${name} ${quote(value)}`));
  return `${article} ${kind.kind}${kind.group === "" ? "" : ` of ${kind.group}`}${limits.join("")}`;
}
