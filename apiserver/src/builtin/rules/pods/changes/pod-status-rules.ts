// The addresses in the status of a Pod.
import { invalidError, type FieldError } from "../../../../errors/field-error.js";
import { type JsonObject } from "../../../../json.js";
import { objectsAt, textAt } from "../../../read-path.js";
import { checkIp } from "../../field-rules.js";

/** Checks the addresses of a Pod and of its node; what was there before may stay. */
export function checkPodAddresses(pod: JsonObject, live: JsonObject): FieldError[] {
  const [host, first] = [textAt(pod, "status.hostIP"), objectsAt(pod, "status.hostIPs")[0]];
  const ofHost = first === undefined ? "" : textAt(first, "ip");
  return [
    ...checkAddresses("podIPs", pod, live),
    ...(first === undefined || ofHost === host
      ? []
      : [invalidError("status.hostIPs[0].ip", ofHost, "must be equal to `hostIP`")]),
    ...checkAddresses("hostIPs", pod, live),
  ];
}

function checkAddresses(list: string, pod: JsonObject, live: JsonObject): FieldError[] {
  const [now, before] = [pod, live].map((one) =>
    objectsAt(one, `status.${list}`).map((entry) => textAt(entry, "ip")),
  ) as [string[], string[]];
  const families = new Set(now.map((ip) => ip.includes(":")));
  const field = `status.${list}`;
  const shown = now.map((ip) => ({ IP: ip }));
  return [
    ...now.flatMap((ip, index) => (before.includes(ip) ? [] : checkIp(`${field}[${index}]`, ip))),
    ...(now.length > 1 && (now.length > 2 || families.size < 2)
      ? [invalidError(field, shown, "may specify no more than one IP for each IP family")]
      : []),
  ];
}
