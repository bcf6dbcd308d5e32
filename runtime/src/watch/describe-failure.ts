import { findError, type ApiError } from "../base/errors.js";
import { messageOf } from "../base/logger.js";
import { crdNameOf, kindNameOf, type ResourceDefinition } from "../base/resource-definition.js";

/** Names what a list-watch follows, for messages: the kind, and the namespace if it is only one. */
export function describeWatched(definition: ResourceDefinition, namespace?: string): string {
  return kindNameOf(definition) + (namespace === undefined ? "" : ` in namespace "${namespace}"`);
}

/** Says why a kind cannot be watched and what to do about it. */
export function describeFailure(
  error: unknown,
  watched: { readonly definition: ResourceDefinition; readonly namespace?: string | undefined },
  { server, origin }: { server: string; origin: string },
): string {
  const { definition, namespace } = watched;
  const apiError = findError<ApiError>(error, "ApiError");
  const kind = kindNameOf(definition);
  const what = describeWatched(definition, namespace);
  if (apiError?.code === 404 && definition.isCustom) {
    return (
      `${kind} is not served by ${server}: the CustomResourceDefinition ${crdNameOf(definition)} is not installed or does not serve ` +
      `${definition.version}; install it with kubectl apply -f crds/; trying again`
    );
  }
  if (apiError?.code === 404) return `${kind} is not served by ${server}; trying again`;
  if (apiError?.code === 401)
    return `${server} rejects the credentials from ${origin} (401 Unauthorized), so ${what} cannot be watched; trying again`;
  if (apiError?.code === 403)
    return `not allowed to list and watch ${what} at ${server}: ${apiError.message}; grant list and watch on ${definition.plural}; trying again`;
  return `cannot watch ${what} at ${server}: ${messageOf(error)}; trying again`;
}
