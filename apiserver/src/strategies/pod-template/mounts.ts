// Volume mounts and block devices of containers.
import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  notFoundError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { checkOneOf, checkRequired } from "../../validation/fields.js";
import { checkNoBacksteps } from "../shared/volume-sources.js";
import { checkRelative } from "./projected-volumes.js";

/** Validates volumeMounts. As in kube-apiserver, errors inside of a mount refer to the list. */
export function checkMounts(path: string, container: JsonObject, volumes: JsonObject[]): FieldError[] {
  const devices = objectsAt(container, "volumeDevices");
  const paths = new Set<string>();
  return objectsAt(container, "volumeMounts").flatMap((mount, index) => {
    const at = `${path}[${index}]`;
    const [name, place] = [textAt(mount, "name"), textAt(mount, "mountPath")];
    const isTaken = paths.has(place);
    paths.add(place);
    const isDevice = (key: string, value: string) => devices.some((device) => textAt(device, key) === value);
    const problem = (key: "name" | "mountPath", when: boolean, detail: string) =>
      when ? [invalidError(`${at}.${key}`, textAt(mount, key), detail)] : [];
    return [
      ...checkRequired(`${at}.name`, name),
      ...(volumes.some((volume) => textAt(volume, "name") === name) ? [] : [notFoundError(`${at}.name`, name)]),
      ...checkRequired(`${at}.mountPath`, place),
      ...problem("mountPath", isTaken, "must be unique"),
      ...problem("name", isDevice("name", name), "must not already exist in volumeDevices"),
      ...problem("mountPath", isDevice("devicePath", place), "must not already exist as a path in volumeDevices"),
      ...checkBelow(path, at, mount),
      ...checkPropagation(`${path}.mountPropagation`, mount, container),
      ...checkReadOnly(`${path}.recursiveReadOnly`, mount),
    ];
  });
}

function checkBelow(path: string, at: string, mount: JsonObject): FieldError[] {
  const [below, expression] = [textAt(mount, "subPath"), textAt(mount, "subPathExpr")];
  const both = "subPathExpr and subPath are mutually exclusive";
  return [
    ...checkRelative(`${path}.subPath`, below),
    ...(below !== "" && expression !== "" ? [invalidError(`${at}.subPathExpr`, expression, both)] : []),
    ...checkRelative(`${path}.subPathExpr`, expression),
  ];
}

function checkPropagation(path: string, mount: JsonObject, container: JsonObject): FieldError[] {
  const mode = memberOf(mount, "mountPropagation");
  const isPrivileged = memberOf(objectAt(container, "securityContext"), "privileged") === true;
  const refused = "Bidirectional mount propagation is available only to privileged containers";
  return [
    ...checkOneOf(path, mode, ["Bidirectional", "HostToContainer", "None"]),
    ...(mode === "Bidirectional" && !isPrivileged ? [forbiddenError(path, refused)] : []),
  ];
}

function checkReadOnly(path: string, mount: JsonObject): FieldError[] {
  const [mode, spread] = [memberOf(mount, "recursiveReadOnly"), memberOf(mount, "mountPropagation") ?? "None"];
  if (mode === undefined || mode === "Disabled") return [];
  if (mode !== "Enabled" && mode !== "IfPossible") return checkOneOf(path, mode, ["Disabled", "Enabled", "IfPossible"]);
  const isReadOnly = memberOf(mount, "readOnly") === true;
  const needsNone = "may only be specified when mountPropagation is None or not specified";
  return [
    ...(isReadOnly ? [] : [forbiddenError(path, "may only be specified when readOnly is true")]),
    ...(spread === "None" ? [] : [forbiddenError(path, needsNone)]),
  ];
}

/** Validates volumeDevices, each of which must refer to a PersistentVolumeClaim volume. */
export function checkDevices(path: string, container: JsonObject, volumes: JsonObject[]): FieldError[] {
  const mounts = objectsAt(container, "volumeMounts");
  const [names, paths] = [new Set<string>(), new Set<string>()];
  return objectsAt(container, "volumeDevices").flatMap((device, index) => {
    const at = `${path}.volumeDevices[${index}]`;
    const [name, place] = [textAt(device, "name"), textAt(device, "devicePath")];
    const volume = volumes.find((one) => memberOf(one, "name") === name);
    const isClaim = ["persistentVolumeClaim", "ephemeral"].some((key) => objectAt(volume, key) !== undefined);
    const problem = (key: "name" | "devicePath", when: boolean, detail: string) =>
      when ? [invalidError(`${at}.${key}`, textAt(device, key), detail)] : [];
    const goesUp = checkNoBacksteps("", place).length > 0;
    const isMounted = (key: string, value: string) => mounts.some((mount) => textAt(mount, key) === value);
    const notAClaim = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
    const errors = [
      ...(name === "" ? [requiredError(`${at}.name`)] : []),
      ...problem("name", names.has(name), "must be unique"),
      ...problem("name", volume !== undefined && !isClaim, notAClaim),
      ...(volume === undefined ? [notFoundError(`${at}.name`, name)] : []),
      ...(place === "" ? [requiredError(`${at}.devicePath`)] : []),
      ...problem("devicePath", paths.has(place), "must be unique"),
      ...problem("devicePath", goesUp, "can not contain backsteps ('..')"),
      ...problem("name", isMounted("name", name), "must not already exist in volumeMounts"),
      ...problem("devicePath", isMounted("mountPath", place), "must not already exist as a path in volumeMounts"),
    ];
    if (name !== "") names.add(name);
    if (!goesUp) paths.add(place);
    return errors;
  });
}
