import { objectAt } from "../../json.js";
import { defaultTolerations } from "../../strategies/pod-template/scheduling.js";
import type { AdmissionPlugin } from "../admission.js";

/** Adds the default tolerations for nodes that are not ready or unreachable (admission plugin DefaultTolerationSeconds). */
export const defaultTolerationSeconds: AdmissionPlugin = {
  resources: ["pods"],
  mutate({ subresource, object }) {
    const spec = subresource === "" ? objectAt(object, "spec") : undefined;
    if (spec !== undefined) defaultTolerations(spec);
  },
};
