import type { Authorizer } from "../identity/authorizer.js";
import { serviceAccount } from "./accounts/service-accounts.js";
import type { AdmissionPlugin } from "./admission.js";
import { certificateSigning, certificateSubjectRestriction } from "./certificates.js";
import { defaultClasses } from "./classes/default-classes.js";
import { priority } from "./classes/priority.js";
import { runtimeClass } from "./classes/runtime-class.js";
import { claimResize } from "./limits/claim-growth.js";
import { limitRanger } from "./limits/limit-ranges.js";
import { podSecurity } from "./pod-security/pod-security.js";
import { podResize } from "./pods/resize.js";
import { simulation } from "./pods/simulation.js";
import { defaultTolerationSeconds } from "./pods/tolerations.js";
import { paramRights } from "./policy/param-rights.js";
import { roleEscalation } from "./role-escalation.js";
import { podTopologyLabels } from "./topology-labels.js";

/** The optional plugins of a server. */
export interface EnabledPlugins {
  /** Enables the plugin ServiceAccount. */
  readonly needsAccounts: boolean;
  /** Whether Pods are simulated; enables the check of their simulation annotations. */
  readonly simulatesPods: boolean;
}

/**
 * Returns the plugins in the order in which kube-apiserver runs them. Policies and webhooks run after them, and ResourceQuota runs last.
 * https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
 */
export function pluginsOf(authorizer: Authorizer, { needsAccounts, simulatesPods }: EnabledPlugins): AdmissionPlugin[] {
  return [
    // kube-apiserver does these two checks in the storage of the resources.
    paramRights(authorizer),
    roleEscalation(authorizer),
    limitRanger,
    ...(needsAccounts ? [serviceAccount] : []),
    podSecurity,
    priority,
    defaultTolerationSeconds,
    claimResize,
    runtimeClass,
    certificateSigning(authorizer),
    certificateSubjectRestriction,
    defaultClasses,
    podTopologyLabels,
    podResize,
    ...(simulatesPods ? [simulation] : []),
  ];
}
