// How the built-in types of Kubernetes 1.36 differ from the ordinary one. Keys are `plural` or `plural.group`.
import type { Strategy } from "./strategy.js";

const spec = { generation: "spec" } as const;
const wholeObject = { generation: "outside-metadata" } as const;
const webhooks = { generation: "outside-metadata-as-given" } as const;
const needsVersion = { allowsUnconditionalUpdate: false } as const;
const upsert = { createsOnUpdate: true } as const;
const answersObject = { returnsDeletedObject: true } as const;
const anyFinalizer = { checksFinalizers: false } as const;
const pathSegment = { nameRule: "path-segment" } as const;

/** The strategy of each built-in type that is not ordinary. */
export const STRATEGIES: Record<string, Partial<Strategy>> = {
  endpoints: upsert,
  events: upsert,
  limitranges: upsert,
  namespaces: { ...answersObject, nameRule: "namespace" },
  persistentvolumeclaims: { ...answersObject, settlesOnUpdate: "all" },
  persistentvolumes: answersObject,
  pods: {
    ...spec,
    ...answersObject,
    graceful: true,
    resetOnStatus: [".spec", ".metadata.deletionTimestamp", ".metadata.ownerReferences"],
  },
  podtemplates: { ...wholeObject, ...answersObject },
  replicationcontrollers: { ...spec, defaultPropagation: "Orphan" },
  resourcequotas: answersObject,
  nodes: { createsWithStatus: true },
  serviceaccounts: answersObject,
  "ipaddresses.networking.k8s.io": { nameRule: "address" },
  services: { ...upsert, ...answersObject, nameRule: "label" },

  "apiservices.apiregistration.k8s.io": { ...needsVersion, ...anyFinalizer },

  "daemonsets.apps": spec,
  "deployments.apps": { generation: "spec-and-annotations", resetOnStatus: [".spec", ".metadata.labels"] },
  "replicasets.apps": spec,
  "statefulsets.apps": { ...spec, nameRule: "label" },

  "cronjobs.batch": spec,
  // A Job without labels has those of its Pods, and these get some only when all else has its defaults.
  "jobs.batch": { ...spec, defaultPropagation: "Orphan", settlesOnUpdate: "without-labels" },

  "events.events.k8s.io": upsert,
  "leases.coordination.k8s.io": { ...needsVersion, ...upsert, ...anyFinalizer },
  "endpointslices.discovery.k8s.io": { generation: "outside-metadata-and-labels", countsDropped: true },
  "certificatesigningrequests.certificates.k8s.io": { ...needsVersion, resetOnMain: [".status", ".spec"] },

  "ingresses.networking.k8s.io": spec,
  "ingressclasses.networking.k8s.io": spec,
  "networkpolicies.networking.k8s.io": { generation: "spec-as-given" },
  "poddisruptionbudgets.policy": {
    ...spec,
    ...needsVersion,
    ...pathSegment,
    ...anyFinalizer,
    checksMetadata: false,
  },

  "clusterrolebindings.rbac.authorization.k8s.io": { ...upsert, ...pathSegment },
  "clusterroles.rbac.authorization.k8s.io": { ...upsert, ...pathSegment },
  "rolebindings.rbac.authorization.k8s.io": { ...upsert, ...pathSegment },
  "roles.rbac.authorization.k8s.io": { ...upsert, ...pathSegment },

  "deviceclasses.resource.k8s.io": { ...spec, ...answersObject },
  "resourceclaims.resource.k8s.io": answersObject,
  "resourceclaimtemplates.resource.k8s.io": answersObject,
  "resourceslices.resource.k8s.io": { ...spec, ...answersObject, countsDropped: true },

  "csidrivers.storage.k8s.io": { generation: "spec-from-zero", ...needsVersion, ...answersObject },
  "csinodes.storage.k8s.io": { ...needsVersion, ...answersObject },
  "csistoragecapacities.storage.k8s.io": needsVersion,
  "storageclasses.storage.k8s.io": answersObject,
  "volumeattributesclasses.storage.k8s.io": answersObject,
  "volumeattachments.storage.k8s.io": {
    ...needsVersion,
    ...answersObject,
    resetOnStatus: [".metadata", ".spec"],
  },

  "mutatingadmissionpolicies.admissionregistration.k8s.io": { ...spec, ...needsVersion, ...anyFinalizer },
  "mutatingadmissionpolicybindings.admissionregistration.k8s.io": { ...spec, ...needsVersion, ...anyFinalizer },
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": { ...webhooks, ...needsVersion, ...anyFinalizer },
  "validatingadmissionpolicies.admissionregistration.k8s.io": { ...spec, ...needsVersion, ...anyFinalizer },
  "validatingadmissionpolicybindings.admissionregistration.k8s.io": { ...spec, ...needsVersion, ...anyFinalizer },
  "validatingwebhookconfigurations.admissionregistration.k8s.io": { ...webhooks, ...needsVersion, ...anyFinalizer },
  "customresourcedefinitions.apiextensions.k8s.io": { ...spec, ...needsVersion, ...anyFinalizer },

  "priorityclasses.scheduling.k8s.io": { generation: "first" },
  "runtimeclasses.node.k8s.io": { ...needsVersion, ...upsert, ...anyFinalizer },
  "flowschemas.flowcontrol.apiserver.k8s.io": spec,
  "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": spec,
};
