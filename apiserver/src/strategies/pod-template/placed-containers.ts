import { objectsAt } from "../../builtin/read-path.js";
import type { JsonObject } from "../../json.js";

const LISTS = ["initContainers", "containers", "ephemeralContainers"];

/** A container of any type and its path. */
interface PlacedContainer {
  readonly at: string;
  readonly container: JsonObject;
}

/** Lists all containers of a Pod spec at `path`. */
export function placedContainers(path: string, spec: JsonObject): PlacedContainer[] {
  return LISTS.flatMap((list) =>
    objectsAt(spec, list).map((container, index) => ({ at: `${path}.${list}[${index}]`, container })),
  );
}
