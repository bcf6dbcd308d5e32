import { objectsAt } from "../../builtin/read-path.js";
import { type JsonObject, type JsonValue, isObject, memberOf, objectAt, stringAt } from "../../json.js";
import type { StructDefaults } from "../strategy.js";
import { placedContainers } from "./placed-containers.js";

/** Struct defaults of Pods. */
export const podDefaults: StructDefaults = {
  "core.v1.Container": (container) => defaultPullPolicy(container, { image: "image", policy: "imagePullPolicy" }),
  "core.v1.EphemeralContainer": (container) =>
    defaultPullPolicy(container, { image: "image", policy: "imagePullPolicy" }),
  "core.v1.ImageVolumeSource": (source) => defaultPullPolicy(source, { image: "reference", policy: "pullPolicy" }),
  "core.v1.Volume": defaultVolumeSource,
  "core.v1.PodSpec": defaultPodSpec,
};

/** Struct defaults of Pod templates. */
export const podTemplateDefaults: StructDefaults = { ...podDefaults, "core.v1.PodTemplateSpec": dropOldAnnotations };

function defaultPodSpec(spec: JsonObject): void {
  spec["securityContext"] ??= {};
  // serviceAccount is the deprecated name of serviceAccountName; both have the same value.
  const account = spec["serviceAccountName"] ?? spec["serviceAccount"];
  if (account !== undefined) spec["serviceAccountName"] = spec["serviceAccount"] = account;
}

const MAX_IMAGE = 255;
const PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";

/** Matches an image reference with tag and digest; an invalid reference has no tag. */
const IMAGE = new RegExp(
  `^(?:(?:[a-zA-Z0-9](?:[-.a-zA-Z0-9]*[a-zA-Z0-9])?|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?/)?(${PART}(?:/${PART})*)(?::([A-Za-z0-9_][-A-Za-z0-9_.]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,}))?$`,
);

/** Sets the default pull policy: Always for the tag `latest` or no tag, otherwise IfNotPresent. */
function defaultPullPolicy(holder: JsonObject, keys: { image: string; policy: string }): void {
  if (memberOf(holder, keys.policy) !== undefined) return;
  const image = stringAt(holder, keys.image) ?? "";
  const [name = "", tag, digest] = IMAGE.exec(image)?.slice(1) ?? [];
  const isName = name !== "" && name.length <= MAX_IMAGE;
  const isLatest = isName && (tag === "latest" || (tag === undefined && digest === undefined));
  holder[keys.policy] = isLatest ? "Always" : "IfNotPresent";
}

/** Sets emptyDir on a volume without source. */
function defaultVolumeSource(volume: JsonObject): void {
  if (Object.keys(volume).every((key) => key === "name")) volume["emptyDir"] = {};
}

const OLD_ANNOTATIONS = ["alpha", "beta"].flatMap((stage) =>
  ["init-containers", "init-container-statuses"].map((name) => `pod.${stage}.kubernetes.io/${name}`),
);

/** Removes legacy annotations of init containers, in place. */
export function dropOldAnnotations(pod: JsonObject): void {
  const metadata = objectAt(pod, "metadata");
  const annotations = objectAt(metadata, "annotations");
  if (metadata === undefined || annotations === undefined) return;
  for (const key of OLD_ANNOTATIONS) delete annotations[key];
  if (Object.keys(annotations).length === 0) delete metadata["annotations"];
}

/** Drops the fields of disabled features from a pod spec, in place. */
export function dropPodFields(spec: JsonValue | undefined): void {
  if (!isObject(spec)) return;
  delete spec["schedulingGroup"];
  for (const { container } of placedContainers("", spec)) dropSignal(container);
  for (const source of objectsAt(spec, "volumes").flatMap((volume) => objectsAt(volume, "projected.sources")))
    for (const kind of ["clusterTrustBundle", "podCertificate"]) delete source[kind];
}

function dropSignal(container: JsonObject): void {
  const lifecycle = objectAt(container, "lifecycle");
  if (lifecycle?.["stopSignal"] === undefined) return;
  delete lifecycle["stopSignal"];
  if (Object.keys(lifecycle).length === 0) delete container["lifecycle"];
}

/** Copies the labels of the Pod template to an object without labels. Both share one map, as in kube-apiserver. */
export function copyTemplateLabels(object: JsonObject, spec: JsonObject): void {
  const labels = objectAt(objectAt(objectAt(spec, "template"), "metadata"), "labels");
  const metadata = objectAt(object, "metadata");
  if (labels !== undefined && metadata !== undefined) metadata["labels"] ??= labels;
}
