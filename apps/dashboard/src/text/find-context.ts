import { createContext, useContext } from 'react';

/** The text that the reader searches in the page; empty without a search. Closed parts with a hit open. */
const FindContext = createContext('');
export const FindProvider = FindContext.Provider;
export const useFindText = (): string => useContext(FindContext);
