/** The functions of jstat that we call; the package brings no types. */
declare module 'jstat' {
  const jStat: {
    studentt: { inv(probability: number, degreesOfFreedom: number): number };
    /** ln Γ(x). */
    gammaln(x: number): number;
  };
  export default { jStat };
}
