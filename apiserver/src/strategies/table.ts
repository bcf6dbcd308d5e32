// How the built-in types of Kubernetes 1.36 differ from the ordinary one. Keys are `plural` or `plural.group`.
import type { Strategy } from "../builtin/rest-strategy.js";

const review = { creates: "review" } as const;
const spec = { generation: "spec" } as const;
const wholeObject = { generation: "outside-metadata" } as const;
const webhooks = { generation: "outside-metadata-as-given" } as const;
const needsVersion = { allowsUnconditionalUpdate: false } as const;
const upsert = { createsOnUpdate: true } as const;
const answersObject = { returnsDeletedObject: true } as const;
const anyFinalizer = { checksFinalizers: false } as const;
const pathSegment = { nameRule: "path-segment" } as const;
const longName = { nameRule: "long-name" } as const;
const statusAlone = { resetOnStatus: [".metadata", ".spec"] } satisfies Partial<Strategy>;
const withoutDependents = { defaultPropagation: undefined } as const;
// What the update of a type checks of metadata.
const unchecked = { checksMetadata: [] } satisfies Partial<Strategy>;
const whole = { checksMetadata: ["object"] } satisfies Partial<Strategy>;
const wholeTwice = { checksMetadata: ["object", "object"] } satisfies Partial<Strategy>;
const wholeAndChange = { checksMetadata: ["object", "change"] } satisfies Partial<Strategy>;

/** The strategy of each built-in type that is not ordinary. */
export const STRATEGIES: Record<string, Partial<Strategy>> = {
  bindings: { creates: "binding" },
  configmaps: wholeAndChange,
  secrets: wholeAndChange,
  endpoints: { ...upsert, ...wholeAndChange },
  events: { ...withoutDependents, ...upsert, ...anyFinalizer, ...pathSegment, ...unchecked },
  limitranges: { ...upsert, ...whole },
  namespaces: { ...wholeAndChange, ...answersObject, nameRule: "namespace" },
  persistentvolumeclaims: { ...wholeAndChange, ...answersObject, settlesOnUpdate: "all" },
  persistentvolumes: { ...answersObject, ...wholeTwice },
  pods: {
    ...wholeAndChange,
    ...spec,
    ...answersObject,
    graceful: true,
    resetOnStatus: [".spec", ".metadata.deletionTimestamp", ".metadata.ownerReferences"],
  },
  podtemplates: { ...wholeObject, ...answersObject },
  replicationcontrollers: { ...longName, ...spec, defaultPropagation: "Orphan" },
  resourcequotas: answersObject,
  nodes: { ...wholeAndChange, createsWithStatus: true },
  serviceaccounts: { ...answersObject, ...wholeAndChange },
  "ipaddresses.networking.k8s.io": { ...wholeAndChange, nameRule: "address" },
  services: { ...upsert, ...answersObject, nameRule: "label" },

  "apiservices.apiregistration.k8s.io": { ...pathSegment, ...wholeAndChange, ...needsVersion, ...anyFinalizer },

  "controllerrevisions.apps": wholeAndChange,
  "daemonsets.apps": spec,
  "deployments.apps": { generation: "spec-and-annotations", resetOnStatus: [".spec", ".metadata.labels"] },
  "replicasets.apps": spec,
  "statefulsets.apps": { ...spec, nameRule: "label" },

  "selfsubjectreviews.authentication.k8s.io": review,
  "tokenreviews.authentication.k8s.io": review,
  "localsubjectaccessreviews.authorization.k8s.io": review,
  "selfsubjectaccessreviews.authorization.k8s.io": review,
  "selfsubjectrulesreviews.authorization.k8s.io": review,
  "subjectaccessreviews.authorization.k8s.io": review,

  "cronjobs.batch": spec,
  // A Job without labels has those of its Pods, and these get some only when all else has its defaults.
  "jobs.batch": { ...wholeAndChange, ...spec, defaultPropagation: "Orphan", settlesOnUpdate: "without-labels" },

  "events.events.k8s.io": { ...upsert, ...withoutDependents },
  "leases.coordination.k8s.io": { ...needsVersion, ...upsert, ...anyFinalizer },
  "endpointslices.discovery.k8s.io": { ...whole, generation: "outside-metadata-and-labels", countsDropped: true },
  "certificatesigningrequests.certificates.k8s.io": {
    ...pathSegment,
    ...wholeAndChange,
    resetOnMain: [".status", ".spec"],
  },

  "servicecidrs.networking.k8s.io": statusAlone,
  "ingresses.networking.k8s.io": { ...spec, ...wholeAndChange },
  "ingressclasses.networking.k8s.io": { ...spec, ...wholeAndChange },
  "networkpolicies.networking.k8s.io": { generation: "spec-as-given" },
  "poddisruptionbudgets.policy": {
    ...spec,
    ...needsVersion,
    ...pathSegment,
    ...anyFinalizer,
    ...unchecked,
  },

  "clusterrolebindings.rbac.authorization.k8s.io": { ...wholeAndChange, ...upsert, ...pathSegment },
  "clusterroles.rbac.authorization.k8s.io": { ...wholeAndChange, ...upsert, ...pathSegment },
  "rolebindings.rbac.authorization.k8s.io": { ...wholeAndChange, ...upsert, ...pathSegment },
  "roles.rbac.authorization.k8s.io": { ...wholeAndChange, ...upsert, ...pathSegment },

  "deviceclasses.resource.k8s.io": { ...longName, ...wholeAndChange, ...spec, ...answersObject },
  "resourceclaims.resource.k8s.io": { ...statusAlone, ...answersObject, ...wholeAndChange },
  "resourceclaimtemplates.resource.k8s.io": { ...answersObject, ...wholeAndChange },
  "resourceslices.resource.k8s.io": { ...spec, ...answersObject, countsDropped: true },

  "csidrivers.storage.k8s.io": { generation: "spec-from-zero", ...needsVersion, ...answersObject },
  "csinodes.storage.k8s.io": { ...whole, ...needsVersion, ...answersObject },
  "csistoragecapacities.storage.k8s.io": { ...needsVersion, ...wholeAndChange },
  "storageclasses.storage.k8s.io": { ...answersObject, ...wholeAndChange },
  "volumeattributesclasses.storage.k8s.io": { ...answersObject, ...wholeAndChange },
  "volumeattachments.storage.k8s.io": {
    ...whole,
    ...needsVersion,
    ...answersObject,
    ...statusAlone,
  },

  "mutatingadmissionpolicies.admissionregistration.k8s.io": { ...whole, ...spec, ...needsVersion, ...anyFinalizer },
  "mutatingadmissionpolicybindings.admissionregistration.k8s.io": {
    ...whole,
    ...spec,
    ...needsVersion,
    ...anyFinalizer,
  },
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": {
    ...whole,
    ...webhooks,
    ...needsVersion,
    ...anyFinalizer,
  },
  "validatingadmissionpolicies.admissionregistration.k8s.io": {
    ...statusAlone,
    ...whole,
    ...spec,
    ...needsVersion,
    ...anyFinalizer,
  },
  "validatingadmissionpolicybindings.admissionregistration.k8s.io": {
    ...whole,
    ...spec,
    ...needsVersion,
    ...anyFinalizer,
  },
  "validatingwebhookconfigurations.admissionregistration.k8s.io": {
    ...whole,
    ...webhooks,
    ...needsVersion,
    ...anyFinalizer,
  },
  "customresourcedefinitions.apiextensions.k8s.io": {
    ...spec,
    ...needsVersion,
    ...anyFinalizer,
  },

  "priorityclasses.scheduling.k8s.io": { generation: "first" },
  "runtimeclasses.node.k8s.io": { ...wholeAndChange, ...needsVersion, ...upsert, ...anyFinalizer },
  "flowschemas.flowcontrol.apiserver.k8s.io": { ...statusAlone, ...spec, ...whole },
  "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": { ...statusAlone, ...spec, ...whole },
};
