import { decodeBuiltin } from "../builtin/decode.js";
import { keepVerdicts, stampConditions } from "../strategies/core/configuration-defaults.js";
import { defaultBuiltin } from "../strategies/defaults.js";
import { dropFields } from "../strategies/dropped-fields.js";
import { holdGated, keepObservedGenerations, selectOwnLabels } from "../strategies/core/pod-preparation.js";
import { forgetInternalTraffic } from "../strategies/core/service-defaults.js";
import { countTemplate, relabelJob } from "../strategies/apps/workload-defaults.js";
import { podTemplatePathOf } from "../builtin/pod-templates.js";
import { resourceNameOf } from "../builtin/resource-name.js";
import { qualifiedNameProblems } from "../validation/names.js";
import { copyArmor } from "../strategies/pod-template/profile-annotations.js";
import { checkAddresses } from "../strategies/core/service-addresses.js";
import { checkAsked, doubleNodePort, healthPortProblem } from "../strategies/core/service-allocation.js";
import { validateBuiltinStatus } from "../strategies/status.js";
import { validateBuiltin } from "../strategies/validate.js";
import { checkPart } from "../strategies/subresources.js";
import { builtinSchemas } from "../builtin/schemas.js";
import { type ServedType, hasBuiltinSchema } from "../builtin/served-type.js";
import { kindWarnings, nameWarnings } from "../strategies/warnings.js";
import { statusWarnings } from "../strategies/core/network-warnings.js";
import { podWarnings } from "../strategies/pod-template/warnings.js";
import { serviceWarnings } from "../strategies/core/service-warnings.js";
import { type FieldError, invalidError } from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import { badRequest, internalError, invalid, plainError } from "../errors/status-error.js";
import { type JsonObject, arrayAt, objectAt, stringAt } from "../json.js";
import { isStandardFinalizer, isTerminating, kindRefOf, metadataOf, now } from "../object/object-meta.js";
import { mergeTypeOfBuiltin } from "../ssa/merge-type.js";
import type { Allocator } from "./allocator.js";
import type { TypeRules } from "./registry.js";

// The types whose new objects get more than defaults: own finalizers, or labels that hold their uid.
const NEEDS_UID = new Set([
  "jobs",
  "namespaces",
  "persistentvolumeclaims",
  "persistentvolumes",
  "volumeattributesclasses",
]);

/** Returns the rules of a built-in kind. */
export function builtinRules(type: ServedType, allocatorOf: () => Allocator): TypeRules {
  // Kubernetes gives a Service its addresses before it looks at the rest.
  const allocation = (service: JsonObject, live: JsonObject | undefined, isDryRun: boolean) => ({
    ...allocatorOf(),
    checkAsked(spec: JsonObject) {
      const old = objectAt(live, "spec");
      const asked = { ranges: allocatorOf().ranges, old, isDryRun };
      const ofAddresses = checkAddresses(spec, old);
      const errors = ofAddresses.length > 0 ? ofAddresses : checkAsked(spec, asked);
      if (errors.length > 0) throw invalid(kindRefOf(type, stringAt(metadataOf(service), "name") ?? ""), errors);
      const double = old === undefined ? undefined : doubleNodePort(spec);
      if (double !== undefined) throw plainError(`duplicate nodePort: ${double}`);
      const ofHealth = healthPortProblem(spec, asked);
      if (ofHealth !== undefined) throw internalError(ofHealth);
    },
  });
  const hasPods = (type.group === "" && type.plural === "pods") || podTemplatePathOf(type) !== undefined;
  const ofUnevaluated = unevaluatedWarnings(type);
  return {
    mergeType: mergeTypeOfBuiltin(builtinSchemas(), hasBuiltinSchema(type) ? type.schemaName : ""),
    decode(object) {
      const { unknownFields, error } = decodeBuiltin(type, object);
      if (error === undefined) return unknownFields;
      throw badRequest(`${type.kind} in version ${quote(type.version)} cannot be handled as a ${type.kind}: ${error}`);
    },
    fillDefaults(object, live) {
      // Normalising drops what is empty, but an empty list of managers is an order to forget them.
      const forgetsManagers = arrayAt(objectAt(object, "metadata"), "managedFields")?.length === 0;
      defaultBuiltin(type, object, live === undefined ? {} : { old: live });
      if (forgetsManagers) metadataOf(object)["managedFields"] = [];
    },
    finish(object, live, { subresource, isDryRun }) {
      dropFields(type, object, live);
      if (live !== undefined) {
        if (type.kind === "CertificateSigningRequest") {
          if (subresource === "status") keepVerdicts(object, live);
          stampConditions(object, live, now());
        }
        if (type.kind === "DaemonSet") countTemplate(object, live);
        if (type.kind === "Job") relabelJob(object);
        if (type.kind === "Pod" && subresource === "status") keepObservedGenerations(object, live);
        if (type.kind === "PersistentVolume") stampPhase(object, live);
        if (type.kind === "Service" && subresource !== "status")
          defaultBuiltin(type, object, { ...allocation(object, live, isDryRun), old: live });
        return undefined;
      }
      // The status was taken off the new object, and what its type shows anyway is missing.
      if (!NEEDS_UID.has(type.plural) && type.strategy.resetOnMain.length === 0) return undefined;
      const allocator = type.kind === "Service" ? allocation(object, undefined, isDryRun) : {};
      defaultBuiltin(type, object, { ...allocator, uid: stringAt(metadataOf(object), "uid") ?? "" });
      if (type.kind === "PersistentVolume") stampPhase(object, undefined);
      if (type.kind === "APIService" && objectAt(objectAt(object, "spec"), "service") === undefined) markLocal(object);
      if (type.kind !== "Pod") return undefined;
      holdGated(object, now());
      selectOwnLabels(object);
      return copyArmor(object);
    },
    reread(object) {
      if (type.kind === "Job") relabelJob(object);
      if (type.kind === "Service") forgetInternalTraffic(object);
    },
    validate: (object, live) => validateBuiltin(type, object, live),
    validatePart: (object, live, subresource) => checkPart(type, { object, live, subresource }),
    validateStatus: (object, live) => validateBuiltinStatus(type, object, live),
    warnings: (object, live, subresource) => [
      ...nameWarnings(type.kind, object, live),
      ...(hasPods ? podWarnings(type, object, live) : []),
      ...(type.kind === "Service" && subresource !== "status" ? serviceWarnings(object) : []),
      ...(subresource === "status" ? statusWarnings(type.kind, object) : kindWarnings(type.kind, object, live)),
      ...ofUnevaluated,
    ],
  };
}

// What the server itself serves is there at once.
function markLocal(apiService: JsonObject): void {
  const own = { reason: "Local", message: "Local APIServices are always available" };
  apiService["status"] = {
    conditions: [{ type: "Available", status: "True", lastTransitionTime: now(), ...own }],
  };
}

// When a volume came into its phase: a time that is not given, or is that of another phase, is told by the server.
function stampPhase(volume: JsonObject, live: JsonObject | undefined): void {
  const [status, before] = [objectAt(volume, "status") ?? {}, objectAt(live, "status")];
  const [time, oldTime] = [status["lastPhaseTransitionTime"], before?.["lastPhaseTransitionTime"]];
  const isSamePhase = (status["phase"] ?? "") === (before?.["phase"] ?? "");
  if (time !== undefined && (isSamePhase || time !== oldTime)) return;
  const own = isSamePhase ? oldTime : now();
  if (own !== undefined) volume["status"] = { ...status, lastPhaseTransitionTime: own };
}

/** Returns the rules of Namespaces, given what they have in common with other built-in kinds. */
export function namespaceRules(common: TypeRules): TypeRules {
  return {
    ...common,
    validate: (object, live) => [...common.validate(object, live), ...checkFinalizers(object, () => FINALIZERS)],
    validatePart: (object, _live, subresource) =>
      subresource === "finalize" ? checkFinalizers(object, (index) => `${FINALIZERS}[${index}]`) : undefined,
    validateStatus: (object) => checkPhase(object),
  };
}

const FINALIZERS = "spec.finalizers";

function checkFinalizers(object: JsonObject, pathOf: (index: number) => string): FieldError[] {
  const finalizers = (arrayAt(objectAt(object, "spec"), "finalizers") ?? []).map(String);
  return finalizers.flatMap((name, index) => {
    const path = pathOf(index);
    const errors = qualifiedNameProblems(name).map((detail) => invalidError(path, name, detail));
    if (name.includes("/") || isStandardFinalizer(name)) return errors;
    const detail = "name is neither a standard finalizer name nor is it fully qualified";
    return [...errors, invalidError(path, name, detail)];
  });
}

function checkPhase(object: JsonObject): FieldError[] {
  const phase = stringAt(objectAt(object, "status"), "phase") ?? "";
  const wanted = isTerminating(object) ? "Terminating" : "Active";
  if (phase === "" || phase === wanted) return [];
  const state = isTerminating(object) ? "not empty" : "empty";
  return [invalidError("status.Phase", phase, `may only be '${wanted}' if \`deletionTimestamp\` is ${state}`)];
}

// What a real server itself would act on, and this one does not: by resource. What a controller of another process does is not
// told: a server without controllers is what kube-apiserver is, too.
const KINDS: Readonly<Record<string, string>> = {
  "apiservices.apiregistration.k8s.io": "the embedded API server stores it and passes no request on",
};

/** Names what a kind asks of the server and the server does not do, for `Warning` headers. */
function unevaluatedWarnings(type: ServedType): string[] {
  const ofKind = KINDS[resourceNameOf(type)];
  return ofKind === undefined ? [] : [`${type.kind}: ${ofKind}`];
}
