module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<128x256xf32>) -> (tensor<128x256xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<128x256xf32>} : () -> tensor<128x256xf32>
    %1 = "stablehlo.constant"() {value = dense<1.0> : tensor<128x256xf32>} : () -> tensor<128x256xf32>
    %2 = "stablehlo.constant"() {value = dense<0.70710677> : tensor<128x256xf32>} : () -> tensor<128x256xf32>
    %3 = "stablehlo.multiply"(%arg0, %2) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %4 = "chlo.erf"(%3) : (tensor<128x256xf32>) -> tensor<128x256xf32>
    %5 = "stablehlo.constant"() {value = dense<3.832507> : tensor<128x256xf32>} : () -> tensor<128x256xf32>
    %6 = "stablehlo.abs"(%3) : (tensor<128x256xf32>) -> tensor<128x256xf32>
    %7 = "stablehlo.compare"(%6, %5) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xi1>
    %8 = "stablehlo.sign"(%3) : (tensor<128x256xf32>) -> tensor<128x256xf32>
    %9 = "stablehlo.select"(%7, %8, %4) : (tensor<128x256xi1>, tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %10 = "stablehlo.add"(%9, %1) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %11 = "stablehlo.constant"() {value = dense<0.5> : tensor<128x256xf32>} : () -> tensor<128x256xf32>
    %12 = "stablehlo.multiply"(%arg0, %11) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %13 = "stablehlo.multiply"(%12, %10) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    "func.return"(%13) : (tensor<128x256xf32>) -> ()
  }
}
