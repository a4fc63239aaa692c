# nextpnr-ice40: places and routes the design of yosys.
programs='nextpnr-ice40 yosys'
packages='nextpnr-ice40 yosys'
licence=ISC

run() {
  echo 'module top(input clk, input [7:0] a, b, output reg [15:0] y);
    always @(posedge clk) y <= a * b + {b, a};
  endmodule' >input.v
  yosys -q -p 'read_verilog input.v; synth_ice40 -top top -json input.json'
  record nextpnr-ice40 -q --hx1k --seed 1 --json input.json --asc output.asc --placer heap
}
