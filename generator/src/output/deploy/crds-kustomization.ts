/** The user's kustomization that installs the CRDs apart from the operator; projects of earlier versions have none. */
export const CRDS_KUSTOMIZATION = "deploy/crds/kustomization.yaml";
