// A write that the API server refuses because a field is immutable. Its answer often names no more than `spec`, and quotes what was sent.
import { isAboutImmutable, type ApiError, type StatusCause } from "../../base/errors.js";
import { genericDifferences } from "../../match/matchers.js";
import type { Difference } from "../../match/match.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { KubernetesObject } from "../../base/kubernetes-object.js";

const NAMED_FIELDS = 10;

interface ImmutableChange {
  readonly definition: ResourceDefinition;
  readonly live: KubernetesObject;
  readonly desired: object;
  /** Places, as the matcher of the write names them, that are no longer stated. */
  readonly removed: readonly Difference[];
}

/** Returns the paths of the immutable fields that a refused write would change; those that the API server names if they cannot be found. */
export function immutablePaths(
  { causes }: Pick<ApiError, "causes">,
  { removed, ...states }: ImmutableChange,
): readonly string[] {
  const all = [...genericDifferences(states), ...removed].map(({ path }) => path);
  const found = causes.filter(isAboutImmutable).flatMap((cause) => {
    const { field = "" } = cause;
    const changeable = changeableFields(cause);
    const inside = all.filter(
      (path) => (isWithin(path, field) || isWithin(field, path)) && !changeable.some((each) => isWithin(path, each)),
    );
    return inside.length > 0 ? inside : [field];
  });
  return [...new Set(found)].filter((path) => path !== "");
}

/** Completes the message of such an error with the paths of the fields that would change. */
export function nameImmutable(error: ApiError, change: ImmutableChange): void {
  const paths = immutablePaths(error, change);
  const more = paths.length - NAMED_FIELDS;
  if (paths.length === 0) return;
  error.message += `; immutable fields that would change: ${paths.slice(0, NAMED_FIELDS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function isWithin(path: string, outer: string): boolean {
  const text = outer.includes("[*]") ? path.replace(/\[\d+\]/g, "[*]") : path;
  return text === outer || text.startsWith(`${outer}.`) || text.startsWith(`${outer}[`);
}

// "updates to statefulset spec for fields other than 'replicas' and 'template' are forbidden", "may not change fields other than `spec.tolerations`"
function changeableFields({ message = "", field = "" }: StatusCause): readonly string[] {
  const [, list = ""] = /\b(?:other than|except)\b(.*)/s.exec(message) ?? [];
  return [...list.matchAll(/['`]([\w.[\]*]+)['`]/g)].map(([, name]) =>
    name!.startsWith(`${field}.`) ? name! : `${field}.${name}`,
  );
}
