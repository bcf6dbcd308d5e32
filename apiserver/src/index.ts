export { startApiServer, type ApiServer, type ApiServerOptions, type RequestRecord } from "./server.js";
export type { FaultScope } from "./faults/fault-scope.js";
export type { ActiveFault, DisturbedWatches, FaultAnswer, FaultControl, FaultRule } from "./faults/faults.js";
export type { StaticUser } from "./identity/tokens/token-file.js";
export type { CertificateAccess, UserAccess } from "./identity/user-access.js";
export { waitFor, type WaitOptions } from "./wait-for.js";
