import { defaultTolerations } from "../../builtin/defaults/pod-defaults.js";
import { objectAt } from "../../json.js";
import { type AdmittedWrite, isOfPod } from "../admission.js";

/** Lets a Pod that is created or updated stay for a while on a node that fails, in place, as the admission plugin DefaultTolerationSeconds does. */
export function setTolerations(write: AdmittedWrite): void {
  const spec = isOfPod(write) ? objectAt(write.object, "spec") : undefined;
  if (spec !== undefined) defaultTolerations(spec);
}
