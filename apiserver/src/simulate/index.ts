export type { KeyedCertificate } from "../x509/authority.js";
export type { Connection } from "./feed/api-client.js";
export { simulatedControllers, type SimulatedController } from "./controllers.js";
export { checkSimulationOptions, startSimulation, type Simulation, type SimulationOptions } from "./simulation.js";
