export const wanted = () => ({ metadata: { name: "x" } });
