import { createContext, useContext } from 'react';

/** True for a reader without an account, who sees one shared rollout. Pages hide everything else. */
export const Guest = createContext(false);
export const useGuest = (): boolean => useContext(Guest);
