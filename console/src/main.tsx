import { render } from "preact";

import { App } from "./app";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/memories.css";
import "./styles/drawer.css";

const place = document.getElementById("app");
if (place) render(<App />, place);
