import { objectAt } from "../../json.js";
import { defaultTolerations } from "../../strategies/pod-template/scheduling.js";
import type { AdmissionPlugin } from "../admission.js";

/** Lets a Pod that is created or updated stay for a while on a node that fails. */
export const defaultTolerationSeconds: AdmissionPlugin = {
  resources: ["pods"],
  mutate({ subresource, object }) {
    const spec = subresource === "" ? objectAt(object, "spec") : undefined;
    if (spec !== undefined) defaultTolerations(spec);
  },
};
