/** The label by which the benchmark finds what this operator made, and by which the operator watches. */
export const labels: { [name: string]: string } = { bench: "gen-operator" };
