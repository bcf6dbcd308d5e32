import type { ServedType } from "../builtin/served-type.js";
import { quote } from "../errors/quote.js";
import { arrayAt, isObject, memberOf, objectAt, stringAt, type JsonObject, type JsonValue } from "../json.js";

/** Reads a selectable field of an object as text. */
export type FieldReader = (object: JsonObject) => string;

/** The fields that a type's objects can be selected by, and what the server says about all others. */
export interface SelectableFields {
  fields: ReadonlyMap<string, FieldReader>;
  unsupported: (field: string) => string;
}

interface FieldLabels {
  /** Paths whose absent values read as "". */
  text?: string[];
  /** Paths whose absent values read as "false" or "0". */
  zero?: Record<string, string>;
  /** Fields that are no path of their own. */
  computed?: Record<string, FieldReader>;
  /** Whether objects have no metadata.namespace to select by. */
  hasNoNamespace?: boolean;
  /** What is said of any other field, unless that is what most types say. */
  unsupported?: (field: string) => string;
}

const REFERENCE_FIELDS = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

// Types that declare field labels; all others know metadata.name and metadata.namespace only. Recorded from 1.36.
const FIELD_LABELS: Record<string, FieldLabels> = {
  pods: {
    text: [
      "spec.nodeName",
      "spec.restartPolicy",
      "spec.schedulerName",
      "spec.serviceAccountName",
      "status.phase",
      "status.podIP",
      "status.nominatedNodeName",
    ],
    zero: { "spec.hostNetwork": "false" },
    // The node has an old name, too.
    computed: { "status.podIPs": (object) => podIpsOf(object), "spec.host": pathReader("spec.nodeName", "") },
  },
  events: {
    text: [...REFERENCE_FIELDS.map((field) => `involvedObject.${field}`), "reason", "type"],
    computed: {
      reportingComponent: (object) => textAt(object, ["reportingComponent"]),
      source: (object) => textAt(object, ["source", "component"]) || textAt(object, ["reportingComponent"]),
    },
  },
  "events.events.k8s.io": {
    text: [...REFERENCE_FIELDS.map((field) => `regarding.${field}`), "reason", "type", "reportingController"],
  },
  secrets: { text: ["type"] },
  services: { text: ["spec.clusterIP", "spec.type"] },
  namespaces: { text: ["status.phase"], hasNoNamespace: true },
  nodes: { zero: { "spec.unschedulable": "false" }, hasNoNamespace: true },
  replicationcontrollers: { zero: { "status.replicas": "0" } },
  "jobs.batch": {
    zero: { "status.successful": "0" },
    unsupported: (field) => `field label ${quote(field)} not supported for Job`,
  },
  "resourceslices.resource.k8s.io": {
    text: ["spec.driver", "spec.nodeName"],
    hasNoNamespace: true,
    unsupported: (field) => `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: ${field}`,
  },
  "certificatesigningrequests.certificates.k8s.io": { text: ["spec.signerName"], hasNoNamespace: true },
};

/** Gives the selectable fields of a type. */
export function selectableFieldsOf(type: ServedType): SelectableFields {
  const name = type.group === "" ? type.plural : `${type.plural}.${type.group}`;
  const labels = type.custom === undefined ? FIELD_LABELS[name] : customLabels(type);
  const fields = new Map<string, FieldReader>([["metadata.name", pathReader("metadata.name", "")]]);
  if (labels?.hasNoNamespace !== true) fields.set("metadata.namespace", pathReader("metadata.namespace", ""));
  for (const path of labels?.text ?? []) fields.set(path, pathReader(path, ""));
  for (const [path, zero] of Object.entries(labels?.zero ?? {})) fields.set(path, pathReader(path, zero));
  for (const [field, read] of Object.entries(labels?.computed ?? {})) fields.set(field, read);
  return { fields, unsupported: (field) => unsupportedText(field, labels) };
}

function unsupportedText(field: string, labels: FieldLabels | undefined): string {
  if (labels === undefined) {
    return `${quote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`;
  }
  return labels.unsupported?.(field) ?? `field label not supported: ${field}`;
}

function customLabels(type: ServedType): FieldLabels {
  const declared = (arrayAt(type.custom?.version, "selectableFields") ?? []).filter(isObject);
  const paths = declared.map((field) => (stringAt(field, "jsonPath") ?? "").replace(/^\./, ""));
  return { text: paths, hasNoNamespace: !type.namespaced };
}

function pathReader(path: string, absent: string): FieldReader {
  const keys = path.split(".");
  return (object) => textAt(object, keys) || absent;
}

function textAt(object: JsonObject, keys: string[]): string {
  let value: JsonValue | undefined = object;
  for (const key of keys) value = isObject(value) ? memberOf(value, key) : undefined;
  return value === undefined || value === null || typeof value === "object" ? "" : String(value);
}

function podIpsOf(object: JsonObject): string {
  const ips = (arrayAt(objectAt(object, "status"), "podIPs") ?? []).filter(isObject);
  return ips.map((ip) => stringAt(ip, "ip") ?? "").join(",");
}
