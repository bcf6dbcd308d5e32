// Admission plugins DefaultStorageClass and DefaultIngressClass: set the default class on objects that specify none.
import { resourceNameOf } from "../../builtin/resource-name.js";
import { type JsonObject, memberOf, objectAt, stringAt } from "../../json.js";
import { metadataOf } from "../../object/object-meta.js";
import type { AdmissionPlugin, AdmittedWrite } from "../admission.js";

interface Defaulted {
  readonly classes: { readonly group: string; readonly version: string; readonly plural: string };
  /** Annotation of the default class. */
  readonly mark: string;
  /** Field of the spec that names the class. */
  readonly field: string;
  /** Deprecated annotation that names the class. An object that has it gets no default. */
  readonly annotation: string;
}

// By the resource to default.
const DEFAULTED: Readonly<Record<string, Defaulted>> = {
  persistentvolumeclaims: {
    classes: { group: "storage.k8s.io", version: "v1", plural: "storageclasses" },
    mark: "storageclass.kubernetes.io/is-default-class",
    field: "storageClassName",
    annotation: "volume.beta.kubernetes.io/storage-class",
  },
  "ingresses.networking.k8s.io": {
    classes: { group: "networking.k8s.io", version: "v1", plural: "ingressclasses" },
    mark: "ingressclass.kubernetes.io/is-default-class",
    field: "ingressClassName",
    annotation: "kubernetes.io/ingress.class",
  },
};

export const defaultClasses: AdmissionPlugin = {
  resources: Object.keys(DEFAULTED),
  mutate: setDefaultClass,
};

/** Sets the default class of a new PersistentVolumeClaim or Ingress, in place. */
function setDefaultClass(write: AdmittedWrite): void {
  const { context, operation, subresource, object } = write;
  const defaulted = DEFAULTED[resourceNameOf(context.resource.type)];
  if (defaulted === undefined || operation !== "CREATE" || subresource !== "" || object === undefined) return;
  const spec = objectAt(object, "spec");
  const isAnnotated = annotationOf(object, defaulted.annotation) !== undefined;
  if (spec === undefined || isAnnotated || memberOf(spec, defaulted.field) !== undefined) return;
  const name = defaultClass(write, defaulted);
  if (name !== undefined) spec[defaulted.field] = name;
}

function annotationOf(object: JsonObject, key: string): string | undefined {
  return stringAt(objectAt(metadataOf(object), "annotations"), key);
}

/** If several classes are marked as the default, the newest applies. */
function defaultClass({ context }: AdmittedWrite, { classes, mark }: Defaulted): string | undefined {
  const stored = context.registry.find(classes)?.store.list("") ?? [];
  const marked = stored.map(({ object }) => object).filter((one) => annotationOf(one, mark) === "true");
  const created = (one: JsonObject) => stringAt(metadataOf(one), "creationTimestamp") ?? "";
  const [newest] = marked.sort((one, other) =>
    created(one) < created(other) ? 1 : created(one) > created(other) ? -1 : 0,
  );
  return newest === undefined ? undefined : stringAt(metadataOf(newest), "name");
}
