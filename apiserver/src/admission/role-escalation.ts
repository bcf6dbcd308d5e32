import { type Authorizer, checkEscalation } from "../identity/authorizer.js";
import type { AdmissionPlugin } from "./admission.js";

const PLURALS = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];

/**
 * Rejects roles, and bindings to roles, that grant permissions that the user does not have.
 * https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping
 */
export function roleEscalation(authorizer: Authorizer): AdmissionPlugin {
  return {
    resources: PLURALS.map((plural) => `${plural}.rbac.authorization.k8s.io`),
    validate({ context, name, object, oldObject }) {
      if (object === undefined) return;
      const { user, resource, namespace = "" } = context;
      const previous = oldObject === undefined ? {} : { oldObject };
      checkEscalation(authorizer, { user, plural: resource.type.plural, namespace, name, object, ...previous });
    },
  };
}
