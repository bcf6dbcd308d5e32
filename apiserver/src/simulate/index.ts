export type { Connection } from "./feed/api-client.js";
export { startSimulation, type Simulation, type SimulationOptions, type SimulatedController } from "./simulation.js";
