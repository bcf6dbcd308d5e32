import { TerminalError } from "../base/errors.js";
import {
  type Draft,
  type KubernetesObject,
  type ObjectBody,
  type ObjectMeta,
  type ResourceDefinition,
  keyOf,
} from "../base/kubernetes-object.js";
import { CONTROLLER_LABEL, DEPENDENT_ITEM, DEPENDENT_NAME, OBJECT_KEY, linksTo } from "../base/primary-link.js";
import { type KubernetesDependent, deletionOf } from "../workflow/workflow-definition.js";

/** For whom an object is written. */
interface DesiredOwner {
  readonly dependent: KubernetesDependent;
  readonly primary: KubernetesObject;
  /** The kind of the primary. */
  readonly definition: ResourceDefinition;
  /** The namespaces in which the object would be watched; all of them if absent. */
  readonly namespaces?: readonly string[] | undefined;
  readonly item?: string | undefined;
  /** The value of the label of the controller. */
  readonly label: string;
  /** The finalizer that holds the object for the cleanup of its primary; undefined if nothing does. */
  readonly hold?: string | undefined;
}

const BASE64_FIELDS: { readonly [kind: string]: string } = { Secret: "data", ConfigMap: "binaryData" };
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Completes what `desired` returned: the namespace, and the link to the primary. Throws a TerminalError if it cannot be applied. */
export function completeDesired(
  desired: unknown,
  { dependent, primary, definition, namespaces, item, label, hold }: DesiredOwner,
): ObjectBody {
  const { resource, name, namespace: stated, labelSelector } = dependent;
  const isOwned = deletionOf(dependent) === "garbageCollected";
  const { name: ownerName, namespace: home, uid = "" } = primary.metadata;
  const which = item === undefined ? "" : ` for its item "${item}"`;
  const fail = (problem: string) => new TerminalError(`desired() of dependent "${name}"${which} ${problem}`);
  if (typeof desired !== "object" || desired === null)
    throw fail(`returned ${desired === null ? "null" : typeof desired}`);
  const { apiVersion = resource.apiVersion, kind = resource.kind, ...rest } = desired as Partial<KubernetesObject>;
  if (apiVersion !== resource.apiVersion || kind !== resource.kind)
    throw fail(
      `returned a ${kind} of ${apiVersion}, and the dependent is a ${resource.kind} of ${resource.apiVersion}`,
    );
  const metadata = rest.metadata;
  if (typeof metadata?.name !== "string" || metadata.name === "") throw fail("returned no metadata.name");
  const invalid = invalidBase64In(rest, resource);
  if (invalid !== undefined)
    throw fail(
      `returned invalid base64 in ${invalid}; encode the value, or use ${kind === "Secret" ? "stringData" : "data"}`,
    );
  const isNamespaced = resource.scope === "Namespaced";
  const namespace = isNamespaced ? (metadata.namespace ?? stated ?? home) : undefined;
  if (isNamespaced && namespace === undefined) throw fail("returned no metadata.namespace, and its primary has none");
  if (namespace !== undefined && namespaces !== undefined && !namespaces.includes(namespace))
    throw fail(
      `puts the object into namespace "${namespace}", and the controller watches ${namespaces.join(", ")} only`,
    );
  if (isOwned && definition.scope === "Namespaced" && namespace !== home)
    throw fail(
      `puts the object into ${namespace === undefined ? "no namespace" : `namespace "${namespace}"`}, where no owner reference to its ` +
        "primary is allowed; state deletion: ordered in the workflow spec",
    );
  if (labelSelector !== undefined && !isSelected(metadata.labels ?? {}, labelSelector))
    throw fail(`lacks the labels that its labelSelector "${labelSelector}" asks for`);
  const other = metadata.labels?.[CONTROLLER_LABEL] ?? label;
  if (other !== label)
    throw fail(`sets the label ${CONTROLLER_LABEL} to "${other}", which the runtime sets itself; leave it out`);
  const annotations = {
    [DEPENDENT_NAME]: name,
    [OBJECT_KEY]: keyOf({ name: metadata.name, namespace }),
    ...(item !== undefined && { [DEPENDENT_ITEM]: item }),
    ...(!isOwned && linksTo(primary).annotations),
  };
  const link: Draft<Partial<ObjectMeta>> = {
    labels: Object.assign({}, metadata.labels, { [CONTROLLER_LABEL]: label }),
    annotations: Object.assign({}, metadata.annotations, annotations),
  };
  if (namespace !== undefined) link.namespace = namespace;
  if (hold !== undefined) link.finalizers = [...new Set([...(metadata.finalizers ?? []), hold])];
  if (isOwned) {
    const { apiVersion, kind } = definition;
    const others = metadata.ownerReferences?.filter((each) => each.uid !== uid) ?? [];
    const owner = { apiVersion, kind, name: ownerName, uid, controller: true, blockOwnerDeletion: true };
    link.ownerReferences = [...others, owner];
  }
  return { ...rest, metadata: Object.assign({}, metadata, link) };
}

// The API server rejects it, and names no field.
function invalidBase64In(object: object, { group, kind }: ResourceDefinition): string | undefined {
  const field = group === "" ? BASE64_FIELDS[kind] : undefined;
  const values = field && (object as { readonly [member: string]: unknown })[field];
  for (const [key, value] of Object.entries(Object(values) as object))
    if (typeof value === "string" && !BASE64.test(value.replace(/[\r\n]/g, ""))) return `${field}.${key}`;
  return undefined;
}

// Only equality can be checked here without a parser; other requirements are left to the user.
function isSelected(labels: { [key: string]: string }, selector: string): boolean {
  return selector.split(",").every((requirement) => {
    const [, key, value] = /^\s*([^=!<>\s()]+)\s*==?\s*([^=!<>\s()]*)\s*$/.exec(requirement) ?? [];
    return key === undefined || labels[key] === value;
  });
}
