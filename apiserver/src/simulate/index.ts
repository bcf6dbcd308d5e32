export type { Connection } from "./api-client.js";
export { startSimulation, type Simulation, type SimulationOptions, type SimulatedController } from "./simulation.js";
