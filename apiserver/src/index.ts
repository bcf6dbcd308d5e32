export {
  startApiServer,
  type ApiServer,
  type ApiServerOptions,
  type RequestRecord,
  type UserAccess,
} from "./server.js";
export type { FaultScope } from "./faults/fault-scope.js";
export type { ActiveFault, DisturbedWatches, FaultAnswer, FaultControl, FaultRule } from "./faults/faults.js";
export { waitFor, type WaitOptions } from "./wait-for.js";
