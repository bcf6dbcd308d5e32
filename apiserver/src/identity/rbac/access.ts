import { forbidden, StatusError, statusError } from "../../errors/status-error.js";
import type { UserInfo } from "../user.js";
import type { AccessAttributes } from "./policy-rule.js";

/** Builds the failure of a request that no role allows. */
export function accessDenied(user: UserInfo, attributes: AccessAttributes): StatusError {
  const who = `User ${JSON.stringify(user.username)} cannot ${attributes.verb}`;
  if ("path" in attributes) {
    const message = `forbidden: ${who} path ${JSON.stringify(attributes.path)}`;
    return statusError({ code: 403, reason: "Forbidden", message, details: {} });
  }
  const { group, resource, subresource, namespace, name } = attributes;
  const full = subresource === "" ? resource : `${resource}/${subresource}`;
  const scope = namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  return forbidden({ resource, group, name }, `${who} resource "${full}" in API group "${group}" ${scope}`);
}
