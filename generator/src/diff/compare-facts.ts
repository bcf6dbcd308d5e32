import type { ResourceModel } from "../model/project-model.js";

/** Tells of each field that two plain objects do not have in common. */
export function compareFacts(before: object, after: object, tell: (field: string, text: string) => void): void {
  const [former, now] = [flatten(before), flatten(after)];
  for (const field of new Set([...former.keys(), ...now.keys()])) {
    const [old = "default", present = "default"] = [former.get(field), now.get(field)];
    if (old !== present) tell(field, `${old} → ${present}`);
  }
}

function flatten(value: object, path = ""): Map<string, string> {
  return new Map(
    Object.entries(value).flatMap(([name, each]: [string, unknown]): [string, string][] => {
      const at = path === "" ? name : `${path}.${name}`;
      if (each === undefined) return [];
      if (typeof each === "object" && each !== null && !Array.isArray(each)) return [...flatten(each, at)];
      return [[at, typeof each === "string" ? each : JSON.stringify(each)]];
    }),
  );
}

/** Names a kind as specs do. */
export function kindOf({ group, version, kind }: Pick<ResourceModel, "group" | "version" | "kind">): string {
  return [...(group === "" ? [] : [group]), version, kind].join("/");
}
