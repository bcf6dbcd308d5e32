import { isApiError } from "../../base/errors.js";
import type { ObjectRef } from "../../base/kubernetes-object.js";
import type { ApiClient } from "../../client/api-client.js";
import { review } from "../access-review.js";
import { LEASE } from "./lease.js";

const VERBS = ["get", "watch", "create", "update"];
// Forbidden, not served, or not by this method.
const UNANSWERED = [403, 404, 405];

/** Throws an error that names what this identity may not do with its Lease, if the API server answers such questions (JOSDK's LeaderElectionManager). */
export async function checkLeasePermissions(
  client: Pick<ApiClient, "create">,
  { name, namespace }: Required<ObjectRef>,
  signal: AbortSignal,
): Promise<void> {
  const isAllowed = async (verb: string) => {
    const resource = { namespace, verb, group: LEASE.group, resource: LEASE.plural };
    // The authorizer does not know the name of what is yet to be created.
    const resourceAttributes = verb === "create" ? resource : { ...resource, name };
    const spec = { resourceAttributes };
    const answer = await review(client, "ownAccess", { spec, signal }).catch((error: unknown) => {
      if (UNANSWERED.some((code) => isApiError(error, code))) return undefined;
      throw error;
    });
    return answer?.allowed !== false;
  };
  const answers = await Promise.all(VERBS.map(isAllowed));
  const missing = VERBS.filter((_, index) => answers[index] === false);
  if (missing.length === 0) return;
  throw new Error(
    `leader election needs to ${new Intl.ListFormat("en-GB").format(missing)} ${LEASE.plural}.${LEASE.group} in namespace "${namespace}" (Lease "${name}"), which the ` +
      "identity of this operator may not; grant it by a Role, or turn leader election off (leaderElection: false)",
  );
}
